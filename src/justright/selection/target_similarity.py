"""How similar centroids, or images, are to a target: one of their cosines to all of its images, over its shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np
from jaxtyping import Float

from justright.geometry import CosineQuantile, farthest_similarity, nearest_similarity, row_quantile
from justright.selection.shards import TargetFeatures, TargetItem, target_batch
from justright.utils.settings import SHARE, Range
from justright.utils.types import Array

Centroids = Float[Array, "n dim"]
Similarity = Float[Array, " n"]

REDUCTIONS = ("min", "median", "max")
REDUCTION = Range(lambda r: r in REDUCTIONS or SHARE.allows(r), "min, median, max or a quantile in [0, 1]", REDUCTIONS)
# how a shard is measured, and how the values of shards become one
EXTREMES: Mapping[str | float, tuple[Callable[..., Similarity], np.ufunc]] = {
    "min": (farthest_similarity, np.minimum),
    "max": (nearest_similarity, np.maximum),
}


def similarity_to_target(centroids: Centroids, target: TargetFeatures, reduction: str | float) -> Similarity:
    """The cosine of each centroid to the farthest image ("min"), the nearest ("max"), or a quantile over all."""
    parts = target.each(partial(_of_shard, centroids, reduction))
    if reduction in EXTREMES:
        return reduce(EXTREMES[reduction][1], parts)
    return reduce(CosineQuantile.merge, parts, CosineQuantile(centroids, _quantile(reduction))).similarity()


def reduce_cosines(cosines: Float[Array, "n images"], reduction: str | float) -> Similarity:
    """The same from cosines to all images of a target."""
    if reduction in EXTREMES:
        return np.clip(EXTREMES[reduction][1].reduce(cosines, axis=1).astype(np.float64), -1.0, 1.0)
    return row_quantile(cosines, _quantile(reduction))


def _quantile(reduction: str | float) -> float:
    return 0.5 if reduction == "median" else float(reduction)


def _of_shard(centroids: Centroids, reduction: str | float, item: TargetItem) -> Any:
    """The similarity to the images of one shard, or what a quantile over all shards is made from."""
    batch = target_batch(item, centroids.shape[1])
    if reduction in EXTREMES:
        return EXTREMES[reduction][0](centroids, batch)
    return CosineQuantile(centroids, _quantile(reduction)).update(batch)
