"""FeatureNetwork: a backbone with everything that determines the bytes of its features."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from justright.features.backbone import Backbone
from justright.features.choices import Pooling, Precision
from justright.features.cuts import Stored
from justright.features.workers import tools
from justright.utils.errors import DataError
from justright.utils.types import Array

Features: TypeAlias = Float[Array, " batch *axes"]
Batch: TypeAlias = Float[Tensor, "batch 3 side side"]


class FeatureNetwork:
    """Computes features of a batch. Their bytes depend on the images and on the values in `key` only."""

    def __init__(self, backbone: Backbone, batch_size: int, precision: Precision, pooling: Pooling):
        self.backbone, self.batch_size, self.precision, self.pooling = backbone, batch_size, precision, pooling
        self.device = backbone.device
        self.dtype = "float32" if precision == "float32" else "float16"
        self.shape = self(torch.zeros(1, 3, backbone.recipe.resolution, backbone.recipe.resolution)).shape[1:]

    def key(self) -> dict[str, Any]:
        """The header of a store without the data; the key of the cache."""
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
        """Device, runtime and versions that may change the last bits."""
        return tools(self.device, self.backbone.runtime if self.pooling == "class" else "torch")

    def __call__(self, batch: Batch) -> Features:
        """The features of a batch, as they are stored."""
        half = None if self.precision == "float32" else getattr(torch, self.precision)
        # autocast keeps norms, softmax and sums in float32, which half precision needs
        with torch.inference_mode(), torch.autocast(self.device.type, half) if half else nullcontext():
            return self._as_stored(self.backbone(batch.to(self.device, non_blocking=True), self.pooling))

    @property
    def gives_views(self) -> bool:
        """Whether the plain view that a bank stores is computed on the way to the feature."""
        return self.pooling == "class" and self.precision == "float32"

    def with_views(self, batch: Batch) -> tuple[Features, Stored]:
        """The features of a batch, with the same bits as without views, and the output of the frozen prefix."""
        with torch.inference_mode():
            stored = self.backbone.prefix(batch.to(self.device, non_blocking=True))
            return self._as_stored(self.backbone.suffix(stored)), stored

    def _as_stored(self, features: Tensor) -> Features:
        return features.float().cpu().numpy().astype(self.dtype)


def usable(device: str) -> str:
    """The name of a device; raises if torch cannot compute on it."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without the device
        reason = str(error).partition("\n")[0]
        raise DataError(f"the device {device!r} cannot be used: {reason}", advice="--device cpu") from error
    return device
