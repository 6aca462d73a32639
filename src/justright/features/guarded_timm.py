"""timm, imported so that it works beside every build of torch.

timm imports torchvision for its transforms. Where torchvision's binary part was linked for another build of torch
(a CUDA wheel beside CPU torch), its import stops at operators that this part would have declared. None of them is
used here: they belong to object detection. So when, and only when, that import fails in that way, their schemas are
declared without an implementation and the import is tried again. All other modules take timm from here.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import torch

_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[Any] = []  # a library that is collected takes its schemas along


def _import_torchvision() -> None:
    try:
        import torchvision
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]  # what a failed import leaves behind would be taken for the whole
        library: Any = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        library.define(f"nms{_SCHEMA}")
        library.define(f"qnms{_SCHEMA}")
        _declared.append(library)
        import torchvision  # noqa: F401


_import_torchvision()

import timm  # noqa: E402
from timm.layers import Attention, GluMlp, LayerScale, Mlp, SwiGLU  # noqa: E402
from timm.models import VisionTransformer  # noqa: E402
from timm.models.vision_transformer import Block  # noqa: E402

Network: TypeAlias = Any
"""A network of timm, or a part of one: timm gives its modules no types."""

__all__ = ["Attention", "Block", "GluMlp", "LayerScale", "Mlp", "Network", "SwiGLU", "VisionTransformer", "timm"]
