"""timm, imported so that it works beside every build of torch. All other modules take timm from here.

timm imports torchvision. Where only torchvision's CUDA build can be had beside the CPU build of torch (as when the
place that offers CPU builds is out of reach), its binary part does not load, and its import stops at two operators of
object detection that this part would have declared. timm uses neither. So after that failure, and no other, they are
declared here without an implementation. `scripts/install` takes the fitting build of torchvision where there is one.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import torch

_declared: Any = None  # kept: a library that is collected takes its operators along
try:
    import torchvision
except RuntimeError as error:
    if "operator torchvision::" not in str(error):
        raise
    for _left in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[_left]  # half an import would be taken for the whole
    _declared = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for _operator in ("nms", "qnms"):
        _declared.define(f"{_operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import timm  # noqa: E402
from timm.layers import Attention, BatchNormAct2d, GluMlp, LayerScale, Mlp, SwiGLU  # noqa: E402
from timm.models import VisionTransformer  # noqa: E402
from timm.models.vision_transformer import Block  # noqa: E402

Network: TypeAlias = Any  # a network of timm, or a part of one: timm gives its modules no types
