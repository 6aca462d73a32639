"""How similar centroids, or images, are to a target: one of their cosines to all of its images, over its shards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import numpy as np
from jaxtyping import Float

from justright.geometry import CosineQuantile, farthest_similarity, nearest_similarity, row_quantile
from justright.selection.shards import TargetFeatures, TargetItem, merge_all, target_batch
from justright.settings import SHARE, Range
from justright.types import Array

REDUCTIONS = ("min", "median", "max")
REDUCTION = Range(lambda r: r in REDUCTIONS or SHARE.allows(r), "min, median, max or a quantile in [0, 1]", REDUCTIONS)

Centroids = Float[Array, "n dim"]
Similarity = Float[Array, " n"]


def similarity_to_target(centroids: Centroids, target: TargetFeatures, reduction: str | float) -> Similarity:
    """The cosine of each centroid to the farthest image ("min"), the nearest ("max"), or a quantile over all."""
    if reduction == "min":
        return reduce(np.minimum, target.each(partial(_measure, farthest_similarity, centroids)))
    if reduction == "max":
        return reduce(np.maximum, target.each(partial(_measure, nearest_similarity, centroids)))
    quantile = _quantile(reduction)
    work = partial(_quantile_of_shard, centroids, quantile)
    return merge_all(CosineQuantile(centroids, quantile), work, target.items(), target.engine).similarity()


def reduce_cosines(cosines: Float[Array, "n images"], reduction: str | float) -> Similarity:
    """The same from cosines to all images of a target."""
    if reduction in ("min", "max"):
        extreme = cosines.min(axis=1) if reduction == "min" else cosines.max(axis=1)
        return np.clip(extreme.astype(np.float64), -1.0, 1.0)
    return row_quantile(cosines, _quantile(reduction))


def _quantile(reduction: str | float) -> float:
    return 0.5 if reduction == "median" else float(reduction)


def _measure(measure: Callable[..., Similarity], centroids: Centroids, item: TargetItem) -> Similarity:
    return measure(centroids, target_batch(item, centroids.shape[1]))


def _quantile_of_shard(centroids: Centroids, quantile: float, item: TargetItem) -> CosineQuantile:
    return CosineQuantile(centroids, quantile).update(target_batch(item, centroids.shape[1]))
