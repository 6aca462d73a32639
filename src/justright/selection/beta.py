"""Soft weights from the beta density: neither too similar nor too dissimilar."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DegenerateError, JustrightError
from justright.geometry import (
    DOMAINS,
    CosineSummary,
    cosine_similarity,
    cosine_summary,
    row_norms,
    row_quantile,
)
from justright.selection.base import Resample, Selector, check_choice
from justright.selection.beta_weights import final_weights, peak_similarity, soft_weights, weight_reason
from justright.selection.engines import Engine, in_process, merge_all
from justright.selection.shards import (
    ArrayLike,
    PoolShards,
    TargetItem,
    TargetShards,
    as_numpy,
    check_classes,
    check_repeatable,
    pool_batches,
    pool_sums,
    target_batch,
    target_batches,
    target_items,
)
from justright.selection.target_clusters import ClusterCount, cluster_target
from justright.types import Array

IMAGE_BLOCK = 1024  # pool images met with the whole target at once, at image level
MAX_KEPT_COSINES = 250_000_000  # 1 GB in single precision, for resampling


class BetaSelector(Selector):
    """Soft class weights that peak between too similar and too dissimilar. Eq. 13.

    omega^c = b(gamma_c; alpha, beta),   gamma_c = `farthest_similarity`,   b = `beta_density`

    Parameters:
    alpha, beta   shape of the density; 1 and 1 weigh every class 1
    reduction     of a centroid's cosines to the target: "min", "median", "max" (Tab. A3), or a quantile in [0, 1]
    domain        from cosine to [0, 1]: "clip", "affine", "minmax", "rank", "target" or "raw", see `to_unit_interval`
    normalize     "none"; "max" divides by the largest weight, "mean" by the mean weight of an image of the pool
    level         "class": centroids meet the target; "image": every image of the pool does, and has its own weight
    threshold     if given, weights above it become 1 and others 0 (Tab. 6); it excludes `normalize`
    weight_range  if given, the smallest and largest weight allowed at the end
    n_clusters    for domain="target": categories in the target; None means sqrt(images / 2)
    seed          for domain="target": of the clusters

    Attributes, one entry per class: classes_, class_count_, class_similarity_, class_weight_, reason_. At image level
    similarity and weight of a class are means, and image_similarity_, image_weight_ are aligned with the pool.
    target_similarity_ is the median similarity of the target's own clusters to the target, NaN unless domain="target".
    """

    def __init__(
        self,
        alpha: float = 5.0,
        beta: float = 5.0,
        *,
        reduction: str | float = "min",
        domain: str = "clip",
        normalize: str = "none",
        level: str = "class",
        threshold: float | None = None,
        weight_range: tuple[float, float] | None = None,
        n_clusters: ClusterCount = None,
        seed: int = 0,
    ):
        self.alpha = alpha
        self.beta = beta
        self.reduction = reduction
        self.domain = domain
        self.normalize = normalize
        self.level = level
        self.threshold = threshold
        self.weight_range = weight_range
        self.n_clusters = n_clusters
        self.seed = seed

    @classmethod
    def official(cls) -> BetaSelector:
        """What the paper's public code does instead: see docs/decisions.md."""
        return cls(level="image", domain="raw", normalize="max", weight_range=(0.01, 1.0))

    def fit(self, pool_features: ArrayLike, pool_labels: ArrayLike, target_features: ArrayLike) -> BetaSelector:
        """Weigh the classes of the pool."""
        return self.fit_stream([(pool_features, pool_labels)], [target_features])

    def fit_stream(
        self, pool_shards: PoolShards, target_shards: TargetShards, *, engine: Engine = in_process
    ) -> BetaSelector:
        """Weigh the classes of the pool, one shard in memory at a time.

        At class level both are read once. At image level the target is read anew for every 1,024 images of the pool.
        """
        self._check_options()
        self.target_similarity_ = self._reference(target_shards, engine)
        if self.level == "image":
            return self._fit_images(pool_shards, target_shards, engine)
        sums = pool_sums(pool_shards, engine=engine)  # Eq. 7
        centroids = sums.centroids()
        _check_centroids(sums.classes, centroids)
        self.classes_, self.class_count_ = sums.classes, sums.counts
        self.class_similarity_ = self._similarity(centroids, target_shards, engine)  # Eq. 12
        self.class_weight_ = self._weigh(self.class_similarity_, self.class_count_)
        self.reason_ = self._reasons()
        return self

    def sample_weight(self, labels: ArrayLike) -> Float[Array, " images"]:
        """The weight of each image; at image level, `labels` must be those of the pool, in its order."""
        if self.level == "image" and hasattr(self, "image_weight_"):
            if not np.array_equal(as_numpy(labels), self._image_labels):
                raise JustrightError(
                    "labels other than those of the pool",
                    expected="the pool's own labels in its order: at level='image' each image has its own weight",
                )
            return self.image_weight_
        return super().sample_weight(labels)

    def resampler(
        self,
        pool_features: ArrayLike,
        pool_labels: ArrayLike,
        target_features: ArrayLike,
        target_clusters: ArrayLike | None = None,
    ) -> Resample:
        """Cosines are computed once, while they fit; a resample of the target is a choice of their columns."""
        self._check_options()
        if self.level == "image":
            return super().resampler(pool_features, pool_labels, target_features)
        sums = pool_sums([(pool_features, pool_labels)])
        (target,) = target_batches([target_features], sums.sums.shape[1])
        if len(sums.classes) * len(target) > MAX_KEPT_COSINES:
            return super().resampler(pool_features, pool_labels, target_features)
        cosines = cosine_similarity(sums.centroids(), target)
        reduce = _column_reduction(self.reduction)
        self.target_similarity_ = self._reference([target], in_process)

        def weigh(rows: Int[Array, " rows"], seed: int) -> Float[Array, " classes"]:
            return self._weigh(reduce(cosines[:, rows]), sums.counts)

        return weigh

    def _check_options(self) -> None:
        check_choice("domain", self.domain, DOMAINS)
        check_choice("normalize", self.normalize, ("none", "max", "mean"))
        check_choice("level", self.level, ("class", "image"))
        if isinstance(self.reduction, str):
            check_choice("reduction", self.reduction, ("min", "median", "max"))
        elif not 0 <= self.reduction <= 1:
            raise JustrightError(f"reduction={self.reduction:g}", expected="min, median, max or a quantile in [0, 1]")
        if self.threshold is not None and self.normalize != "none":
            raise JustrightError(
                f"threshold={self.threshold:g} together with normalize={self.normalize!r}",
                expected="one of the two: thresholded weights are 0 and 1 already",
            )

    def _similarity(
        self, centroids: Float[Array, "classes dim"], target_shards: TargetShards, engine: Engine
    ) -> Float[Array, " classes"]:
        work = partial(_shard_summary, centroids, self.reduction)
        summary: Any = cosine_summary(centroids, self.reduction)  # each kind merges with its own, so they share no type
        return merge_all(summary, work, target_items(target_shards), engine).similarity()

    def _reference(self, target_shards: TargetShards, engine: Engine) -> float:
        """How similar clusters of the target are to the target, at the median: what the domain "target" goes by."""
        if self.domain != "target":
            return math.nan
        check_repeatable(target_shards, "domain='target' clusters the target before it is met")
        sizes = [as_numpy(shard).shape for shard in target_shards]
        n_clusters = self.n_clusters
        if n_clusters is None:
            n_clusters = max(2, round(math.sqrt(sum(n for n, _ in sizes) / 2)))
        _, sums = cluster_target(target_shards, sizes[0][1], n_clusters, None, self.seed, engine=engine)
        return float(np.median(self._similarity(sums.centroids(), target_shards, engine)))

    def _fit_images(self, pool_shards: PoolShards, target_shards: TargetShards, engine: Engine) -> BetaSelector:
        check_repeatable(target_shards, "level='image' reads the target once for every block of the pool")
        similarities: list[Float[Array, " _"]] = []
        all_labels: list[Int[Array, " _"]] = []
        for features, labels in pool_batches(pool_shards):
            all_labels.append(labels)
            for start in range(0, len(features), IMAGE_BLOCK):
                block = features[start : start + IMAGE_BLOCK]
                similarities.append(self._similarity(block, target_shards, engine))
        self._image_labels = np.concatenate(all_labels) if all_labels else np.zeros(0, dtype=np.int64)
        self.classes_, position, self.class_count_ = np.unique(
            self._image_labels, return_inverse=True, return_counts=True
        )
        check_classes(self.classes_)
        self.image_similarity_ = np.concatenate(similarities)
        self.image_weight_ = self._weigh(self.image_similarity_, np.ones(len(position), dtype=np.int64))
        self.class_similarity_ = np.bincount(position, self.image_similarity_) / self.class_count_
        self.class_weight_ = np.bincount(position, self.image_weight_) / self.class_count_
        self.reason_ = self._reasons()
        return self

    def _weigh(self, similarity: Float[Array, " n"], counts: Int[Array, " n"]) -> Float[Array, " n"]:
        soft = soft_weights(similarity, self.alpha, self.beta, self.domain, self.target_similarity_)
        return final_weights(soft, counts, self.threshold, self.normalize, self.weight_range)

    def _reasons(self) -> list[str]:
        peak = peak_similarity(self.alpha, self.beta, self.domain, self.target_similarity_)
        return [
            weight_reason(weight, similarity, peak, is_hard=self.threshold is not None)
            for weight, similarity in zip(self.class_weight_, self.class_similarity_, strict=True)
        ]


def _shard_summary(centroids: Float[Array, "classes dim"], reduction: str | float, item: TargetItem) -> CosineSummary:
    return cosine_summary(centroids, reduction).update(target_batch(item, centroids.shape[1]))


def _check_centroids(classes: Int[Array, " classes"], centroids: Float[Array, "classes dim"]) -> None:
    is_zero = row_norms(centroids) == 0
    if is_zero.any():
        raise DegenerateError(
            f"the features of class {classes[is_zero][0]} cancel out: their mean is zero",
            expected="a centroid with a direction",
            advice="look at the images of this class, or level='image'",
        )


def _column_reduction(reduction: str | float) -> Callable[[Float[Array, "classes rows"]], Float[Array, " classes"]]:
    if reduction == "min":
        return lambda cosines: np.clip(cosines.min(axis=1).astype(np.float64), -1.0, 1.0)
    if reduction == "max":
        return lambda cosines: np.clip(cosines.max(axis=1).astype(np.float64), -1.0, 1.0)
    return lambda cosines: row_quantile(cosines, 0.5 if reduction == "median" else float(reduction))
