"""timm, imported so that it works beside every build of torch. All other modules take timm from here.

timm imports torchvision. If torchvision is a CUDA build and torch a CPU build, as on machines that cannot reach the
index of CPU builds, the import fails at two operators of object detection, which timm does not use. After that failure,
and no other, they are declared here without an implementation.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

_declared: Any = None  # kept alive: its operators go when it is garbage-collected
try:
    import torchvision
except RuntimeError as error:
    if "operator torchvision::" not in str(error):
        raise
    _declared = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for _operator in ("nms", "qnms"):
        _declared.define(f"{_operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import timm  # noqa: E402
from timm.layers import Attention, BatchNormAct2d, GluMlp, LayerScale, Mlp, SwiGLU  # noqa: E402
from timm.models import VisionTransformer  # noqa: E402
from timm.models.vision_transformer import Block  # noqa: E402

Network: TypeAlias = Any  # a network of timm, or a part of one: timm gives its modules no types
