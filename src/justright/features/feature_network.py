"""FeatureNetwork: a backbone with everything that settles the bytes of its features."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from justright.features.backbone import Backbone
from justright.features.choices import Pooling, Precision
from justright.features.cuts import Stored
from justright.features.fast_cpu import CompiledOnce, FastModule, NetworkPart
from justright.features.workers import tools
from justright.utils.errors import DataError
from justright.utils.types import Array

Features: TypeAlias = Float[Array, " batch *axes"]
Batch: TypeAlias = Float[Tensor, "batch 3 side side"]


class FeatureNetwork:
    """From a batch of images to their features. `key` names all that their bytes depend on but the images."""

    def __init__(self, backbone: Backbone, batch_size: int, precision: Precision, pooling: Pooling):
        self.backbone, self.batch_size, self.precision, self.pooling = backbone, batch_size, precision, pooling
        self.device = backbone.device
        self._fast = CompiledOnce()
        self.dtype = "float32" if precision == "float32" else "float16"
        self.shape = self(torch.zeros(1, 3, backbone.recipe.resolution, backbone.recipe.resolution)).shape[1:]

    def key(self) -> dict[str, Any]:
        """The header of a store and the key of the cache, but for the data."""
        how = {"precision": self.precision, "batch_size": self.batch_size, "batch_norm": "as it is"}
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "backbone": {
                "name": self.backbone.name,
                "fingerprint": self.backbone.fingerprint,
                "pooling": self.pooling,
            },
            "transform": self.backbone.recipe.as_dict(),
            "computation": how | self.tools(),
        }

    def tools(self) -> dict[str, str]:
        """What computes here, as far as it may show in the last bits."""
        fast = self._fast_suffix()
        return tools(self.device, "torch" if fast is None else fast.name)

    def __call__(self, batch: Batch) -> Features:
        """The features of a batch, as they are stored."""
        if not len(batch):
            return np.empty((0, *self.shape), self.dtype)
        half = None if self.precision == "float32" else getattr(torch, self.precision)
        # autocast keeps norms, softmax and sums in float32: that makes the halves sound
        with torch.inference_mode(), torch.autocast(self.device.type, half) if half else nullcontext():
            features = self._features(batch.to(self.device, non_blocking=True))
        return self._as_stored(features)

    @property
    def gives_views(self) -> bool:
        """Whether a plain view, as a bank stores it, is there on the way to the feature."""
        return self.pooling == "class" and self.precision == "float32"

    def with_views(self, batch: Batch) -> tuple[Features, Stored]:
        """The features of a batch, to the same bits as without, and what the frozen prefix gave on the way."""
        with torch.inference_mode():
            stored = self.backbone.prefix(batch.to(self.device, non_blocking=True))
            return self._as_stored(self._suffix(stored)), stored

    def _as_stored(self, features: Tensor) -> Features:
        return features.float().cpu().numpy().astype(self.dtype)

    def _features(self, batch: Tensor) -> Tensor:
        if self._fast_suffix() is not None:
            return self._suffix(self.backbone.prefix(batch))
        return self.backbone(batch, self.pooling)

    def _suffix(self, stored: Stored) -> Tensor:
        fast = self._fast_suffix()
        return self.backbone.suffix(stored) if fast is None else fast(stored[0])[0]

    def _fast_suffix(self) -> FastModule | None:
        """What follows the prefix, where a faster runtime computes both."""
        backbone = self.backbone
        is_plain = self.pooling == "class" and self.precision == "float32" and self.device.type == "cpu"
        if not is_plain or backbone.runtime == "torch":
            return None
        tensors = [*backbone.model.parameters(), *backbone.model.buffers()]
        height_width_channels = backbone.stored_shapes[0]
        example = torch.randn(2, *height_width_channels, generator=torch.Generator().manual_seed(0))
        suffix = NetworkPart(backbone.model, lambda stored: backbone.cut.suffix((stored,)))
        return self._fast.compiled(suffix, example, lambda: f"suffix of {backbone.fingerprint}", tensors)


def usable(device: str) -> str:
    """The name of a device, if torch can compute on it."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without the device
        reason = str(error).partition("\n")[0]
        raise DataError(f"the device {device!r} cannot be used: {reason}", advice="--device cpu") from error
    return device
