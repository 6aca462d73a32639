"""Several clusterings of the same images, whose votes are added.

Each is Ward's clustering with labeled images as constraints, spread over the nearest neighbors: one of all coordinates,
the others of random halves of them. Their mean is more accurate than one of them, and the share of the votes shows how
certain a category is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from justright.clustering.arrays import squared_norms, sum_by_group
from justright.clustering.spreading import Neighbors, nearest_rows, spread
from justright.clustering.ward import MOST_ROWS, constrained_ward
from justright.geometry import evenly_spaced
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED, Array

N_NEIGHBORS = 5
NEIGHBOR_SHARE = 0.7
N_HALVES = 8
KNOWN_VOTE = 0.7  # of one for another cluster


class Ensemble(NamedTuple):
    """The share of the votes of each image for each category, and the clustering of all coordinates."""

    votes: Float[Array, "rows categories"]
    inner: Float[Array, " categories"]  # see WardClusters
    near: Neighbors  # among all rows


def ensemble(parts: Sequence[Float[Array, "rows _"]], fixed: Int[Array, " rows"], n_categories: int) -> Ensemble:
    """Cluster rows by all coordinates of their parts, then `N_HALVES` times by a random half of those of each part.

    Known classes have the same number in all clusterings. Other clusters are matched one to one with those of the votes
    so far, so that they share as many votes as possible.

    Parameters:
        fixed: the known class of each labeled row, numbered from 0 without gaps, -1 for all others.
    """
    n_known = int(fixed.max(initial=UNLABELED)) + 1
    z = np.concatenate(parts, axis=1)
    start, inner = clustered(z, fixed, n_categories)
    near = nearest_rows(z, z, N_NEIGHBORS, np.arange(len(z)))
    votes = spread(start, fixed, near, n_categories, NEIGHBOR_SHARE)
    for number in range(N_HALVES):
        draw = generator(0, "halves", number)
        half = np.concatenate([part[:, draw.random(part.shape[1]) < 0.5] for part in parts], axis=1)
        start = clustered(half, fixed, n_categories)[0]
        near_half = nearest_rows(half, half, N_NEIGHBORS, np.arange(len(half)))
        more = spread(start, fixed, near_half, n_categories, NEIGHBOR_SHARE)
        votes[:, :n_known] += more[:, :n_known]
        ours, theirs = linear_sum_assignment(-(votes[:, n_known:].T @ more[:, n_known:]))
        votes[:, n_known + ours] += more[:, n_known + theirs]
    return Ensemble(np.minimum(votes / (1 + N_HALVES), 1), inner, near)


def most_votes(votes: Float[Array, "rows categories"], n_known: int) -> Int[Array, " rows"]:
    """The category of each image, where a vote for one of the `n_known` known classes counts as `KNOWN_VOTE`.

    Labeled images never leave their class, so unlabeled ones gather around them: known classes have too many.
    """
    counted = votes.copy()
    counted[:, :n_known] *= KNOWN_VOTE
    return counted.argmax(axis=1)


def clustered(
    z: Float[Array, "rows dim"], fixed: Int[Array, " rows"], n_clusters: int
) -> tuple[Int[Array, " rows"], Float[Array, " clusters"]]:
    """Ward's clusters, and their `inner`; of many rows some are clustered, others join the nearest one."""
    free = np.flatnonzero(fixed == UNLABELED)
    chosen = free[evenly_spaced(len(free), min(len(free), max(MOST_ROWS, n_clusters)))]
    kept = np.sort(np.concatenate([np.flatnonzero(fixed != UNLABELED), chosen]))
    ward = constrained_ward(z[kept], fixed[kept], n_clusters)
    labels = np.empty(len(z), dtype=np.int64)
    labels[kept] = ward.labels
    if len(kept) < len(z):
        others = np.setdiff1d(np.arange(len(z)), kept)
        labels[others] = nearest_mean(z[others], means(z[kept], ward.labels))
    inner = np.zeros(n_clusters)  # with fewer images some clusters are empty
    inner[: len(ward.inner)] = ward.inner
    return labels, inner


def means(z: Float[Array, "rows dim"], cluster: Int[Array, " rows"], n: int | None = None) -> Float[Array, "n dim"]:
    """The mean of each cluster; NaN for one without rows."""
    n = int(cluster.max(initial=-1)) + 1 if n is None else n
    size = np.bincount(cluster, minlength=n).astype(float)
    size[size == 0] = np.nan
    return (sum_by_group(z, cluster, n) / size[:, None]).astype(np.float32)


def nearest_mean(z: Float[Array, "rows dim"], of_clusters: Float[Array, "clusters dim"]) -> Int[Array, " rows"]:
    """The cluster whose mean is nearest."""
    distance = squared_norms(of_clusters) - 2 * (z @ of_clusters.T)
    return np.where(np.isnan(distance), np.inf, distance).argmin(axis=1)
