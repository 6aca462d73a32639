"""A backbone of one's own to tune, and the features it gives."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from justright.features.backbone import Backbone
from justright.features.stored_views import Views
from justright.types import Array

FEATURE_ROWS = 256


def own_copy(backbone: Backbone) -> Backbone:
    """A copy that may be tuned; what is frozen is shared with the original."""
    frozen: dict[int, Any] = {id(p): p for p in backbone.parameters() if not p.requires_grad}
    return copy.deepcopy(backbone, frozen)


def features_of(backbone: Backbone, plain: Views, n_images: int) -> Float[Array, "images dim"]:
    """Features of all images under the test transform, as float32."""
    parts = []
    with torch.no_grad():
        for start in range(0, n_images, FEATURE_ROWS):
            rows = np.arange(start, min(start + FEATURE_ROWS, n_images))
            parts.append(backbone.suffix(plain.batch(rows, np.zeros(len(rows), dtype=np.int64))).float().cpu().numpy())
    return np.concatenate(parts)


def mean_feature(backbone: Backbone, plain: Views, n_images: int, rows: Int[Array, " rows"]) -> Float[Array, " dim"]:
    """The mean over some of the images, as the backbone is now."""
    features = features_of(backbone, plain, n_images)
    return features[rows].mean(axis=0, dtype=np.float64).astype(np.float32)
