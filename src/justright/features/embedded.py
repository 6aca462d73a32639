"""The embedded backbone: a small ViT that we trained on glyphs, without labels, and ship with the package.

It was trained on the scripts of `TRAINED_ON` only: every class in the target of the demo is new to it.
`scripts/train_glyph_vit.py` makes the file; docs/research/embedded_backbone.md reports its accuracy.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.data.catalog.glyphs import SCRIPTS
from justright.data.transforms import ImageRecipe
from justright.features.choices import BackboneSpec
from justright.utils.errors import JustrightError

RECIPE = ImageRecipe(resolution=64, resize=64, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))

# scripts it is not trained on: the target of the demo, and its own evaluation
HELD_OUT = ("armenian", "georgian", "hebrew", "lao", "tifinagh", "currency")
TRAINED_ON = tuple(script for script in SCRIPTS if script not in HELD_OUT)

STRIDE = 16
FAINT = 0.35  # contrast below this is taken for noise of the paper
SPREADS = 2.2  # how many standard deviations of the ink lie between the middle and the edge


class GlyphEmbed(nn.Module):
    """From pixels to tokens: find the ink, move it to the middle and scale it to one size, then three convolutions.

    Color, position and size are irrelevant for a character, and a network this small, trained for minutes, would not
    learn to ignore them. Rotation, slant, weight, font and clutter are left to the network.
    """

    def __init__(self, img_size: int, embed_dim: int, **_: Any):
        super().__init__()
        if img_size % STRIDE:
            raise JustrightError(
                f"images of {img_size} pixels for glyph_vit",
                expected=f"a multiple of {STRIDE}",
                advice=f"--img-size {max(1, round(img_size / STRIDE)) * STRIDE}",
            )
        side = img_size // STRIDE
        self.grid_size, self.num_patches, self.patch_size = (side, side), side * side, (STRIDE, STRIDE)
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.Conv2d(64, embed_dim, 3, stride=2, padding=1),
        )

    def forward(self, images: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch tokens dim"]:
        """Tokens, row by row."""
        ink = centered(contrast(images), images.shape[-1] // 2)
        return self.layers(ink).flatten(2).transpose(1, 2)


def contrast(images: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch 1 height width"]:
    """The distance of each pixel to the median color, divided by its 98 % quantile over the image."""
    paper = images.flatten(2).median(dim=2).values[:, :, None, None]
    # on a CPU thirty times as fast as vector_norm over so short an axis
    distance = (images - paper).square().sum(dim=1, keepdim=True).sqrt()
    strongest = distance.flatten(1).kthvalue(int(0.98 * distance[0].numel()), dim=1).values[:, None, None, None]
    return (distance / (strongest + 1e-3)).clamp(max=1.0)


def centered(ink: Float[Tensor, "batch 1 height width"], side: int) -> Float[Tensor, "batch 1 side side"]:
    """The ink moved to the middle by its center of mass and scaled by its larger standard deviation."""
    strong = (ink - FAINT).clamp(min=0)
    mass = strong.sum(dim=(1, 2, 3)) + 1e-3
    # the centers of the pixels, with the edges of the image at -1 and 1
    y, x = (((2 * torch.arange(n) + 1) / n - 1).to(ink) for n in ink.shape[2:])
    across, down = strong.sum(dim=(1, 2)), strong.sum(dim=(1, 3))
    middle_x, middle_y = (across @ x) / mass, (down @ y) / mass
    spread_x = (across * (x - middle_x[:, None]) ** 2).sum(1) / mass
    spread_y = (down * (y - middle_y[:, None]) ** 2).sum(1) / mass
    scale = (SPREADS * torch.maximum(spread_x, spread_y).sqrt()).clamp(0.1, 2.0)
    zero = torch.zeros_like(scale)
    move = torch.stack([scale, zero, middle_x, zero, scale, middle_y], dim=1).view(-1, 2, 3)
    grid = nn.functional.affine_grid(move, [len(ink), 1, side, side], align_corners=False)
    return nn.functional.grid_sample(strong, grid, align_corners=False)


ARCHITECTURE: dict[str, Any] = {
    "img_size": RECIPE.resolution,
    "patch_size": STRIDE,
    "embed_dim": 128,
    "depth": 3,
    "num_heads": 8,
    "embed_layer": GlyphEmbed,
}
"""The arguments of timm's VisionTransformer."""

BACKBONE = BackboneSpec("vit_tiny_patch16_224", asdict(RECIPE), ARCHITECTURE, packaged=("justright.features", ""))
