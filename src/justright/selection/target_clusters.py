"""Clusters of the unlabeled target: plain k-means, or whatever the caller found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DataError, DegenerateError, JustrightError
from justright.geometry import ClassSums, row_chunks
from justright.seeding import generator
from justright.selection.shards import ArrayLike, TargetShards, as_labels, as_numpy, check_repeatable, target_batches
from justright.types import Array

MAX_FIT_IMAGES = 50_000
"""K-means places its centers on at most this many images, drawn by seed; every image then joins the nearest one."""


@runtime_checkable
class HasCategories(Protocol):
    """A fitted estimator of the number of categories."""

    n_categories_: int


ClusterCount: TypeAlias = int | HasCategories | None


def cluster_target(
    target_shards: TargetShards,
    dim: int,
    n_clusters: ClusterCount,
    given: ArrayLike | None,
    seed: int,
    *,
    normalize: bool = False,
) -> tuple[Int[Array, " target"], ClassSums]:
    """The cluster of every target image, and sum and count of each cluster.

    `given` clusters are taken as they are; they may also be true classes, for an oracle. Otherwise scikit-learn's
    k-means runs with `n_clusters`, in the space of the features, or on the unit sphere if `normalize`.
    """
    if given is not None:
        batches = target_batches(target_shards, dim, normalize)
        return _given_clusters(batches, given)
    n_wanted = _number(n_clusters)
    check_repeatable(target_shards, "k-means reads them twice: to place its centers, then to assign every image")
    sample, n_images = _sample(target_batches(target_shards, dim, normalize), seed)
    if n_images < n_wanted:
        raise DegenerateError(
            f"{n_images} target images for {n_wanted} clusters",
            expected="at least as many images as clusters",
            advice=f"n_clusters of at most {n_images}",
        )
    centers = _k_means(sample, n_wanted, seed)
    sums, assigned = ClassSums(), []
    for batch in target_batches(target_shards, dim, normalize):
        nearest = nearest_center(batch, centers)
        sums.update(batch, nearest)
        assigned.append(nearest)
    return np.concatenate(assigned), sums


def nearest_center(
    features: Float[Array, "images dim"], centers: Float[Array, "clusters dim"]
) -> Int[Array, " images"]:
    """The center nearest to each image, by squared Euclidean distance."""
    # |x|^2 is the same for every center and left out.
    half_norms = 0.5 * np.einsum("kd,kd->k", centers, centers)
    nearest = [np.argmax(rows @ centers.T - half_norms, axis=1) for rows in row_chunks(features)]
    return np.concatenate(nearest).astype(np.int64)


def _given_clusters(
    batches: Iterator[Float[Array, "images dim"]], given: ArrayLike
) -> tuple[Int[Array, " target"], ClassSums]:
    clusters = as_labels(given, len(as_numpy(given)), "target_clusters")
    sums, start = ClassSums(), 0
    for batch in batches:
        sums.update(batch[: len(clusters) - start], clusters[start : start + len(batch)])
        start += len(batch)
    if start != len(clusters):
        raise DataError(
            f"{len(clusters)} target_clusters for {start} target images", expected="one cluster per target image"
        )
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


def _sample(batches: Iterator[Float[Array, "images dim"]], seed: int) -> tuple[Float[Array, "sample dim"], int]:
    """Up to MAX_FIT_IMAGES images: those with the smallest of random numbers drawn in order of the images.

    How the images are cut into shards does not change which are drawn.
    """
    draws = generator(seed, "target sample")
    kept: list[Float[Array, "_ dim"]] = []
    priority = np.zeros(0)
    n_images = 0
    for batch in batches:
        n_images += len(batch)
        priority = np.concatenate([priority, draws.random(len(batch))])
        kept.append(batch)
        if len(priority) > MAX_FIT_IMAGES:
            chosen = np.sort(np.argpartition(priority, MAX_FIT_IMAGES)[:MAX_FIT_IMAGES])
            kept, priority = [np.concatenate(kept)[chosen]], priority[chosen]
    return np.concatenate(kept), n_images


def _k_means(sample: Float[Array, "sample dim"], n_clusters: int, seed: int) -> Float[Array, "clusters dim"]:
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
