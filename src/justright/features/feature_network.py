"""FeatureNetwork: a backbone with everything that settles the bytes of its features."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import PIL
import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.errors import DataError
from justright.features.backbone import Backbone, Pooling
from justright.features.cuts import ClassTokenCut, uncut_features
from justright.features.fast_cpu import FastModule, MadeOnce
from justright.features.folding import folded
from justright.features.guarded_timm import Network
from justright.types import Array

Precision = Literal["float32", "bfloat16", "float16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)

Features: TypeAlias = Float[Array, " batch *axes"]
Batch: TypeAlias = Float[Tensor, "batch 3 side side"]


class FeatureNetwork:
    """From a batch of images to their features. `key` names all that their bytes depend on but the images."""

    def __init__(self, backbone: Backbone, batch_size: int, precision: Precision, pooling: Pooling):
        self.backbone, self.batch_size, self.precision, self.pooling = backbone, batch_size, precision, pooling
        self.device = backbone.device
        # a plain ViT has its own, faster way, and no batch norm
        self.is_cut = isinstance(backbone.cut, ClassTokenCut)
        self.model = backbone.model if self.is_cut else folded(backbone.model, self.black(2).to(self.device))
        self._fast = MadeOnce()
        self.dtype = "float32" if precision == "float32" else "float16"
        self.shape = self(self.black(1)).shape[1:]

    def key(self) -> dict[str, Any]:
        """The header of a store and the key of the cache, but for the data."""
        how: dict[str, Any] = {"precision": self.precision, "batch_size": self.batch_size}
        name = {"name": self.backbone.name, "fingerprint": self.backbone.fingerprint, "pooling": self.pooling}
        how["batch_norm"] = "as it is" if self.model is self.backbone.model else "folded"
        transform = self.backbone.recipe.as_dict()
        basics = {"shape": list(self.shape), "dtype": self.dtype}
        return basics | {"backbone": name, "transform": transform, "computation": how | self.tools()}

    def tools(self) -> dict[str, str]:
        """What computes here, as far as it may show in the last bits."""
        is_cuda, fast = self.device.type == "cuda", self._fast_model()
        chip = torch.cuda.get_device_name(self.device) if is_cuda else torch.backends.cpu.get_cpu_capability()
        tools = {"device": f"{self.device.type} {chip}", "torch": torch.__version__, "pillow": PIL.__version__}
        return tools if fast is None else tools | {"runtime": fast.name}

    def black(self, n: int) -> Batch:
        """A batch to be filled."""
        side = self.backbone.recipe.resolution
        return torch.zeros(n, 3, side, side)

    def __call__(self, batch: Batch) -> Features:
        """The features of a batch, as they are stored."""
        if not len(batch):
            return np.empty((0, *self.shape), self.dtype)
        half = None if self.precision == "float32" else getattr(torch, self.precision)
        # autocast keeps norms, softmax and sums in float32: that makes the halves sound
        with torch.inference_mode(), torch.autocast(self.device.type, half) if half else nullcontext():
            features = self._features(batch.to(self.device, non_blocking=True))
        return features.float().cpu().numpy().astype(self.dtype)

    def _features(self, batch: Tensor) -> Tensor:
        # cutting a network that is no plain ViT takes hooks, which threads would see of each other
        if (fast := self._fast_model()) is not None:
            return fast(batch)[0]
        if self.pooling == "class" and not self.is_cut:
            return uncut_features(self.model, batch)
        return self.backbone(batch, self.pooling)

    def _fast_model(self) -> FastModule | None:
        is_plain = self.pooling == "class" and self.precision == "float32" and self.device.type == "cpu"
        if self.is_cut or not is_plain:
            return None
        tensors = [*self.model.parameters(), *self.model.buffers()]
        whole, probe = _Whole(self.model), self.backbone.probe
        return self._fast.made_of(whole, probe, lambda: f"features of {self.backbone.fingerprint}", tensors)


class _Whole(nn.Module):
    """A network up to its feature, as a module."""

    def __init__(self, model: Network):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return uncut_features(self.model, images)


def usable(device: str) -> str:
    """The name of a device, if torch can compute on it."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without the device
        reason = str(error).partition("\n")[0]
        raise DataError(f"the device {device!r} cannot be used: {reason}", advice="--device cpu") from error
    return device
