"""The steps of k-means: k-means++ and Lloyd's iterations, in which some rows keep their cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.clustering.arrays import (
    Centroids,
    RowClusters,
    Rows,
    RowScores,
    row_blocks,
    squared_norms,
    sum_by_group,
)
from justright.utils.types import Array


@dataclass(frozen=True, eq=False)
class Points:
    """The unlabeled rows, and the sum and number of labeled rows of each cluster, which never move."""

    x: Rows
    norms: RowScores
    labeled_sum: Centroids
    labeled_count: Int[Array, " clusters"]


def lloyd(points: Points, centroids: Centroids, max_iter: int, tol: float) -> tuple[RowClusters, Centroids, int]:
    """Move centroids to the mean of their members and rows to their nearest centroid, in turn.

    Neither step raises the inertia sum_i ||x_i - c_i||^2 over labeled and unlabeled rows. Stops when no row changes,
    when (sum_k ||shift_k||)^2 < tol as in GCD, or after max_iter iterations. Returns the cluster of each unlabeled row,
    the centroids and the number of iterations.
    """
    centroids, n_clusters = centroids.copy(), len(centroids)
    moved, n_iter = np.arange(n_clusters), 0
    nearest = NearestCentroids(points.x, centroids)
    count, _ = _fill_empty_clusters(points, nearest, centroids)
    total = points.labeled_sum + sum_by_group(points.x, nearest.labels, n_clusters)
    while n_iter < max_iter and len(moved):
        n_iter += 1
        mean = (total[moved] / count[moved, None]).astype(centroids.dtype)
        shift = float(np.linalg.norm(mean - centroids[moved], axis=1).sum())
        centroids[moved] = mean
        before = nearest.labels.copy()
        nearest.update(centroids, moved)
        count, n_empty = _fill_empty_clusters(points, nearest, centroids)
        moved = _update_sums(points, total, before, nearest.labels)
        if shift**2 < tol and not n_empty:
            break
    return nearest.labels, centroids, n_iter


def _update_sums(points: Points, total: Centroids, before: RowClusters, after: RowClusters) -> Int[Array, " moved"]:
    """Move rows that changed from the sum of the old cluster to that of the new one; returns the affected clusters."""
    changed = np.flatnonzero(before != after)
    rows, old, new = points.x[changed], before[changed], after[changed]
    moved = np.union1d(old, new)
    gained, lost = (sum_by_group(rows, np.searchsorted(moved, cluster), len(moved)) for cluster in (new, old))
    total[moved] += gained - lost
    return moved


def _fill_empty_clusters(
    points: Points, nearest: NearestCentroids, centroids: Centroids
) -> tuple[Int[Array, " clusters"], int]:
    """Give every empty cluster the row farthest from its centroid, from a cluster that keeps another member.

    Returns the number of members of each cluster, and how many clusters were empty.
    """
    labels = nearest.labels.copy()
    count = np.bincount(labels, minlength=len(centroids)) + points.labeled_count
    empty = np.flatnonzero(count == 0)[::-1]
    if not len(empty):
        return count, 0
    farthest_first = iter(np.argsort(-(nearest.own + points.norms), kind="stable").tolist())
    for cluster in empty:
        row = next((row for row in farthest_first if count[labels[row]] > 1), None)
        if row is None:
            break
        count[labels[row]] -= 1
        count[cluster] += 1
        nearest.assign(row, int(cluster), -float(points.norms[row]))
        centroids[cluster] = points.x[row]
    return count, len(empty)


def nearest_two(x: Rows, centroids: Centroids) -> tuple[RowClusters, RowScores, RowScores]:
    """The nearest centroid of each row, its score and that of the second nearest (`scores`)."""
    label, first, second = (np.zeros(len(x), dtype=kind) for kind in (np.int64, x.dtype, x.dtype))
    for rows in row_blocks(len(x), len(centroids)):
        label[rows], first[rows], second[rows] = _two_smallest(scores(x[rows], centroids))
    return label, first, second


def scores(x: Rows, centroids: Centroids) -> Float[Array, "rows clusters"]:
    """||c_k||^2 - 2 x_i . c_k: the squared distance without ||x_i||^2, which is the same for all k."""
    score = x @ (-2 * centroids).T
    score += squared_norms(centroids)
    return score


def _two_smallest(score: Float[Array, "rows clusters"]) -> tuple[RowClusters, RowScores, RowScores]:
    """The place of the smallest value of each row, that value and the second smallest; overwrites `score`."""
    row, label = np.arange(len(score)), score.argmin(axis=1)
    first = score[row, label]
    score[row, label] = np.inf
    return label, first, score.min(axis=1)


class NearestCentroids:
    """The nearest centroid of each row, updated while centroids move.

    `labels` and `own` are the cluster of each row and its score; `rival` is a lower bound of the scores of all other
    clusters. In late iterations few clusters move, and only their columns are computed. Only a row whose own centroid
    moved past its rival is compared with every centroid again. The result is that of a full search, up to rounding.
    """

    def __init__(self, x: Rows, centroids: Centroids):
        self.x = x
        self.labels, self.own, self.rival = nearest_two(x, centroids)

    def update(self, centroids: Centroids, moved: Int[Array, " moved"]) -> None:
        """Find the nearest centroids after the clusters `moved` have new centroids."""
        if len(moved) == len(centroids):
            self.labels, self.own, self.rival = nearest_two(self.x, centroids)
            return
        position = np.full(len(centroids), -1)
        position[moved] = np.arange(len(moved))
        column = position[self.labels]  # of a row's own cluster among the moved, or -1
        for rows in row_blocks(len(self.x), len(moved)):
            self._compare(rows, scores(self.x[rows], centroids[moved]), column[rows], moved)
        stale = np.flatnonzero(self.own > self.rival)
        self.labels[stale], self.own[stale], self.rival[stale] = nearest_two(self.x[stale], centroids)

    def assign(self, row: int, cluster: int, score: float) -> None:
        """Set the cluster of one row; the next update compares it with every centroid."""
        self.labels[row], self.own[row], self.rival[row] = cluster, score, -np.inf

    def _compare(
        self, rows: slice, score: Float[Array, "rows moved"], column: RowClusters, moved: Int[Array, " moved"]
    ) -> None:
        is_own_moved = column >= 0
        own = np.where(is_own_moved, score[np.arange(len(score)), column], self.own[rows])
        best, first, second = _two_smallest(score)
        is_better = first < own
        # The cluster that the row leaves or does not enter is a rival. If it stays in a moved cluster, that is `first`.
        is_same = is_own_moved & ~is_better
        left = np.where(is_better, np.minimum(second, own), np.where(is_same, second, first))
        self.rival[rows] = np.minimum(self.rival[rows], left)
        self.labels[rows] = np.where(is_better, moved[best], self.labels[rows])
        self.own[rows] = np.where(is_better, first, own)


class SeedingOrder:
    """Rows drawn one after the other, each with probability proportional to its squared distance from all before it.

        p(i) ~ min_c ||x_i - c||^2    over the given centroids and the rows drawn so far

    (Arthur and Vassilvitskii, 2007.) Without given centroids the first row is uniform. With several candidates per
    step the one that leaves the least distance in total is taken:

        argmin_c  sum_i min(d_i, ||x_i - c||^2)

    All restarts draw their next row together, with one product per step for the new rows alone. One order serves every
    K, since the first rows do not depend on how many follow; it grows as needed.
    """

    def __init__(self, x: Rows, given: Centroids, restarts: Sequence[np.random.Generator], n_candidates: int = 1):
        self.x, self.norms = x, squared_norms(x)
        self.restarts, self.n_candidates = restarts, n_candidates
        self.has_centroid = len(given) > 0
        nearest = np.full(len(x), np.inf, dtype=x.dtype)
        for rows in row_blocks(len(x), len(given)) if self.has_centroid else ():
            nearest[rows] = _distances(x[rows], self.norms[rows], given).min(axis=1)
        self.distance = np.stack([nearest] * len(restarts))  # (restarts, rows)
        self.picks: list[Int[Array, " restarts"]] = []

    def prefix(self, n: int) -> Int[Array, "restarts prefix"]:
        """The first n rows of each restart's order; fewer if there are fewer distinct rows."""
        while len(self.picks) < n and (self.distance > 0).any(axis=1).all():
            self._step()
        return np.array(self.picks[:n], dtype=np.int64).reshape(-1, len(self.restarts)).T

    def _step(self) -> None:
        restart = np.arange(len(self.restarts))
        weight = self.distance if self.has_centroid or self.picks else np.ones_like(self.distance)
        uniform = np.stack([each.random(self.n_candidates) for each in self.restarts])
        candidates = _draw(weight, uniform)
        column = _distances(self.x, self.norms, self.x[candidates.ravel()]).T
        left = np.minimum(self.distance[:, None, :], column.reshape(*candidates.shape, -1))
        best = left.sum(axis=2, dtype=np.float64).argmin(axis=1) if self.n_candidates > 1 else 0 * restart
        self.picks.append(candidates[restart, best])
        self.distance = left[restart, best]


def _distances(x: Rows, norms: RowScores, centroids: Centroids) -> Float[Array, "rows clusters"]:
    """||x_i - c||^2, exactly 0 where the two are equal up to rounding."""
    scale = norms[:, None] + squared_norms(centroids)
    distance = scale - 2 * (x @ centroids.T)
    # Rounding leaves about eps * scale between duplicates; with that as a weight, a duplicate could be drawn.
    return np.where(distance > 32 * np.finfo(x.dtype).eps * scale, distance, 0)


def _draw(weight: Float[Array, "restarts rows"], uniform: Float[Array, "restarts _"]) -> Int[Array, "restarts _"]:
    """The first row at which the running sum of a restart's weights passes uniform * total."""
    running = weight.cumsum(axis=1, dtype=np.float64)
    target = uniform * running[:, -1:]
    passed = [np.searchsorted(*pair, side="right") for pair in zip(running, target, strict=True)]
    return np.minimum(np.stack(passed), weight.shape[1] - 1)
