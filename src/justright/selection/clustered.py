"""Selectors that compare the classes of the pool with clusters of the target, by k-means or from the caller."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import DISTANCES, ClassSums, row_chunks
from justright.selection.base import Selector
from justright.selection.class_weights import ClassWeights
from justright.selection.shards import ArrayLike, PoolFeatures, TargetFeatures, TargetItem, n_rows, target_batch
from justright.utils.errors import DataError, DegenerateError, JustrightError
from justright.utils.seeding import generator
from justright.utils.settings import WHOLE, at_least, one_of, setting
from justright.utils.types import Array
from justright.utils.validation import check_labels

CLUSTER_COUNT, CLUSTERS_HELP = at_least(2, Integral).or_none(), "categories in the target; see `justright estimate`"

MAX_FIT_IMAGES = 50_000  # k-means places its centers on at most this many images, drawn by seed; all join the nearest
Centers = Float[Array, "clusters dim"]
Clustered: TypeAlias = tuple[Int[Array, " target"], ClassSums]  # cluster of each image; sum and count of each cluster


@dataclass(repr=False, eq=False, kw_only=True)
class ClusteredSelector(Selector):
    """Clusters the target and computes weights from the centroids of classes and clusters alone, in `_decide`.

    Attribute: target_clusters_ per target image.
    """

    n_clusters: int | None = setting(None, CLUSTERS_HELP, CLUSTER_COUNT)
    metric: str = setting("euclidean", "distance of centroids; l2: of images scaled to length 1", one_of(*DISTANCES))
    mass: str = setting("images", "a class or cluster counts as its images, or all alike", one_of("images", "uniform"))
    seed: int = setting(0, "decides the clusters of the target, and its halvings for bins", WHOLE)

    @abstractmethod
    def _decide(self, classes: ClassSums, clusters: ClassSums) -> ClassWeights:
        """Compute weights from the centroids of classes and clusters."""

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        """K-means reads the target twice; clusters of the caller replace it."""
        is_unit = self.metric == "l2"
        classes = pool.sums(is_unit)  # Eq. 7
        dim = classes.sums.shape[1]
        self.target_clusters_, clusters = cluster_target(target, dim, self.n_clusters, self.seed, is_unit)  # Eq. 10
        return self._decide(classes, clusters)

    def _mass(self, sums: ClassSums) -> Float[Array, " n"]:
        return sums.counts.astype(np.float64) if self.mass == "images" else np.ones(len(sums.counts))


def cluster_target(
    target: TargetFeatures, dim: int, n_clusters: int | None, seed: int, normalize: bool = False
) -> Clustered:
    """The cluster of every target image, and sum and count of each cluster.

    Clusters of the caller are used as they are; they may also be true classes, for an oracle. Otherwise k-means runs
    with `n_clusters`, in the space of the features, or on the unit sphere if `normalize`.
    """
    if target.clusters is not None:
        return _from_caller(target, target.clusters, dim, normalize)
    if n_clusters is None:
        raise JustrightError(
            "neither n_clusters nor target_clusters",
            expected="the number of categories in the target",
            advice="the number if it is known, else one of justright.estimation",
        )
    target.require_repeatable("k-means reads them twice: to place its centers, then to assign every image")
    n_images = target.n_images()
    if n_images < n_clusters:
        raise DegenerateError(
            f"{n_images} target images for {n_clusters} clusters",
            expected="at least as many images as clusters",
            advice=f"n_clusters of at most {n_images}",
        )
    from justright.clustering import SemiSupKMeans  # imports scipy, which takes half a second

    n_candidates = 2 + int(math.log(n_clusters))  # as in scikit-learn
    kmeans = SemiSupKMeans(n_clusters, n_init=1, n_candidates=n_candidates, seed=seed, normalize=False)
    centers = kmeans.fit(_take(target, _sample(n_images, seed), dim, normalize)).centroids_
    sums, assigned = ClassSums(), []
    for nearest, shard_sums in target.each(partial(_assign, centers, normalize=normalize)):
        sums.merge(shard_sums)
        assigned.append(nearest)
    return np.concatenate(assigned), sums


def _assign(centers: Centers, item: TargetItem, normalize: bool) -> Clustered:
    """Assign the images of a shard to the center of least squared distance, without the constant |x|^2."""
    batch = target_batch(item, centers.shape[1], normalize)
    half_norms = 0.5 * np.einsum("kd,kd->k", centers, centers)
    nearest = np.concatenate([np.argmax(rows @ centers.T - half_norms, axis=1) for rows in row_chunks(batch)])
    return nearest, ClassSums().update(batch, nearest)


def _from_caller(target: TargetFeatures, given: ArrayLike, dim: int, normalize: bool) -> Clustered:
    """The clusters of the caller, and their sums."""
    clusters = check_labels(given, what="target_clusters")
    sums, start = ClassSums(), 0
    for batch in target.batches(dim, normalize):
        own = clusters[start : start + len(batch)]
        sums.update(batch[: len(own)], own)
        start += len(batch)
    if start != len(clusters):
        problem = f"{len(clusters)} target_clusters for {start} target images"
        raise DataError(problem, expected="one cluster per target image")
    return clusters, sums


def _sample(n_images: int, seed: int) -> Int[Array, " sample"]:
    """Up to MAX_FIT_IMAGES of the images: those with the smallest random numbers.

    The sample does not depend on how the images are divided into shards.
    """
    if n_images <= MAX_FIT_IMAGES:
        return np.arange(n_images)
    priority = generator(seed, "target sample").random(n_images)
    return np.sort(np.argpartition(priority, MAX_FIT_IMAGES)[:MAX_FIT_IMAGES])


def _take(target: TargetFeatures, rows: Int[Array, " sample"], dim: int, normalize: bool) -> Float[Array, "sample dim"]:
    """Some rows of the target, in order; other shards are not read."""
    taken, start = [], 0
    for number, shard in target.items():
        stop = start + n_rows(shard)
        own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)] - start
        if len(own):
            taken.append(target_batch((number, shard), dim, normalize)[own])
        start = stop
    return np.concatenate(taken)
