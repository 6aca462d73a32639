"""Clusters of the unlabeled target: plain k-means, or whatever the caller found."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import ClassSums, row_chunks
from justright.selection.shards import ArrayLike, TargetFeatures, TargetItem, as_labels, as_numpy, n_rows, target_batch
from justright.utils.errors import DataError, DegenerateError, JustrightError
from justright.utils.seeding import generator
from justright.utils.settings import Range, at_least
from justright.utils.types import Array

MAX_FIT_IMAGES = 50_000  # k-means places its centers on at most this many images, drawn by seed; all join the nearest
Centers = Float[Array, "clusters dim"]
Clustered: TypeAlias = tuple[Int[Array, " target"], ClassSums]  # a cluster an image, sum and count of each cluster


@runtime_checkable
class HasCategories(Protocol):
    """A fitted estimator of the number of categories."""

    n_categories_: int


ClusterCount: TypeAlias = int | HasCategories | None
CLUSTER_COUNT = Range(
    lambda count: isinstance(count, HasCategories) or at_least(2, Integral).allows(count),
    "a whole number of at least 2, or a fitted counter of categories",
).or_none()


def cluster_target(
    target: TargetFeatures, dim: int, n_clusters: ClusterCount, seed: int, *, normalize: bool = False
) -> Clustered:
    """The cluster of every target image, and sum and count of each cluster.

    Clusters that the target brings are taken as they are; they may also be true classes, for an oracle. Otherwise
    scikit-learn's k-means runs with `n_clusters`, in the space of the features, or on the unit sphere if `normalize`.
    """
    if target.clusters is not None:
        return _given(target, target.clusters, dim, normalize)
    n_wanted = _number(n_clusters)
    target.require_repeatable("k-means reads them twice: to place its centers, then to assign every image")
    n_images = sum(n_rows(shard) for _, shard in target.items())
    if n_images < n_wanted:
        raise DegenerateError(
            f"{n_images} target images for {n_wanted} clusters",
            expected="at least as many images as clusters",
            advice=f"n_clusters of at most {n_images}",
        )
    centers = _k_means(_take(target, _sample(n_images, seed), dim, normalize), n_wanted, seed)
    sums, assigned = ClassSums(), []
    for nearest, shard_sums in target.each(partial(_assign, centers, normalize=normalize)):
        sums.merge(shard_sums)
        assigned.append(nearest)
    return np.concatenate(assigned), sums


def _assign(centers: Centers, item: TargetItem, normalize: bool) -> Clustered:
    """The images of a shard by the nearest center: the least squared distance, of which |x|^2 is left out."""
    batch = target_batch(item, centers.shape[1], normalize)
    half_norms = 0.5 * np.einsum("kd,kd->k", centers, centers)
    nearest = np.concatenate([np.argmax(rows @ centers.T - half_norms, axis=1) for rows in row_chunks(batch)])
    return nearest, ClassSums().update(batch, nearest)


def _given(target: TargetFeatures, given: ArrayLike, dim: int, normalize: bool) -> Clustered:
    """The clusters that the target brings, and their sums."""
    clusters = as_labels(given, len(as_numpy(given)), "target_clusters")
    sums, start = ClassSums(), 0
    for batch in target.batches(dim, normalize):
        own = clusters[start : start + len(batch)]
        sums.update(batch[: len(own)], own)
        start += len(batch)
    if start != len(clusters):
        problem = f"{len(clusters)} target_clusters for {start} target images"
        raise DataError(problem, expected="one cluster per target image")
    return clusters, sums


def _number(n_clusters: ClusterCount) -> int:
    if isinstance(n_clusters, HasCategories):
        n_clusters = n_clusters.n_categories_
    if n_clusters is None:
        raise JustrightError(
            "neither n_clusters nor target_clusters",
            expected="how many categories the target has",
            advice="the number if it is known, else one of justright.estimation",
        )
    if n_clusters < 2:
        raise DegenerateError(f"n_clusters={n_clusters}", expected="at least 2 clusters")
    return int(n_clusters)


def _sample(n_images: int, seed: int) -> Int[Array, " sample"]:
    """Up to MAX_FIT_IMAGES of the images: those with the smallest of random numbers drawn in order of the images.

    How the images are cut into shards does not change which are drawn.
    """
    if n_images <= MAX_FIT_IMAGES:
        return np.arange(n_images)
    priority = generator(seed, "target sample").random(n_images)
    return np.sort(np.argpartition(priority, MAX_FIT_IMAGES)[:MAX_FIT_IMAGES])


def _take(target: TargetFeatures, rows: Int[Array, " sample"], dim: int, normalize: bool) -> Float[Array, "sample dim"]:
    """Some rows of the target, in order; shards without any of them are not read."""
    taken, start = [], 0
    for number, shard in target.items():
        stop = start + n_rows(shard)
        own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)] - start
        if len(own):
            taken.append(target_batch((number, shard), dim, normalize)[own])
        start = stop
    return np.concatenate(taken)


def _k_means(sample: Float[Array, "sample dim"], n_clusters: int, seed: int) -> Centers:
    from sklearn.cluster import KMeans  # imported here because it takes a second

    wide = np.result_type(sample.dtype, np.float32)
    state = int(generator(seed, "target k-means").integers(2**31))
    n_distinct = len(np.unique(sample, axis=0)) if len(sample) <= 2 * n_clusters else n_clusters
    if n_distinct < n_clusters:
        raise DegenerateError(
            f"{n_distinct} different target images for {n_clusters} clusters",
            expected="at least as many different images as clusters",
            advice=f"n_clusters of at most {n_distinct}",
        )
    centers = KMeans(n_clusters, n_init=1, random_state=state).fit(sample.astype(wide, copy=False)).cluster_centers_
    return np.asarray(centers)
