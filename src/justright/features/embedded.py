"""The embedded backbone: a small ViT that we trained on glyphs, without labels, and ship with the package.

It has seen the scripts of `TRAINED_ON` and no others: every class that the demo looks for is new to it.
`scripts/train_glyph_vit.py` makes the file; docs/embedded_backbone.md says how good it is.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.data.catalog.glyphs import SCRIPTS
from justright.data.recipe import ImageRecipe

RECIPE = ImageRecipe(resolution=64, resize=64, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))

HELD_OUT = ("armenian", "georgian", "hebrew", "lao", "tifinagh", "currency")
"""Scripts kept back: the target of the demo, and what the backbone is judged on."""

TRAINED_ON = tuple(script for script in SCRIPTS if script not in HELD_OUT)

STRIDE = 8


class GlyphEmbed(nn.Module):
    """From pixels to tokens: contrast against the paper, then three small convolutions, one token for 8 x 8 pixels.

    Which colors ink and paper have says nothing about a character. The contrast of a pixel is its distance from the
    median color of the image, relative to the largest distances in it, so the network need not learn that.
    """

    def __init__(self, img_size: int, embed_dim: int, **_: Any):
        super().__init__()
        side = img_size // STRIDE
        self.grid_size, self.num_patches, self.patch_size = (side, side), side * side, (STRIDE, STRIDE)
        self.layers = nn.Sequential(
            nn.AvgPool2d(2),
            nn.Conv2d(1, 32, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.Conv2d(64, embed_dim, 1),
        )

    def forward(self, images: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch tokens dim"]:
        """Tokens, row by row."""
        return self.layers(contrast(images)).flatten(2).transpose(1, 2)


def contrast(images: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch 1 height width"]:
    """How far each pixel is from the median color, as a share of what the strongest fiftieth of the pixels reaches."""
    paper = images.flatten(2).median(dim=2).values[:, :, None, None]
    distance = torch.linalg.vector_norm(images - paper, dim=1, keepdim=True)
    strongest = distance.flatten(1).kthvalue(int(0.98 * distance[0].numel()), dim=1).values[:, None, None, None]
    return (distance / (strongest + 1e-3)).clamp(max=1.0)


ARCHITECTURE: dict[str, Any] = {
    "img_size": RECIPE.resolution,
    "patch_size": STRIDE,
    "embed_dim": 128,
    "depth": 3,
    "num_heads": 4,
    "embed_layer": GlyphEmbed,
}
"""What makes timm's VisionTransformer this one."""
