"""The steps of k-means: k-means++ and Lloyd's iterations, in which some rows keep their cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.clustering.arrays import (
    Centroids,
    RowClusters,
    Rows,
    RowScores,
    like,
    row_blocks,
    squared_norms,
    sum_by_group,
)
from justright.utils.types import Array
from justright.utils.validation import to_numpy


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
    xp, n_clusters = array_namespace(centroids), len(centroids)
    centroids = xp.asarray(centroids, copy=True)
    moved, n_iter = np.arange(n_clusters), 0
    nearest = NearestCentroids(points.x, centroids)
    count, _ = _fill_empty_clusters(points, nearest, centroids)
    total = points.labeled_sum + sum_by_group(points.x, nearest.labels, n_clusters)
    while n_iter < max_iter and len(moved):
        n_iter += 1
        where = like(moved, centroids)
        mean = xp.astype(total[where, :] / like(count[moved].astype(np.float64), total)[:, None], centroids.dtype)
        shift = float(xp.sum(xp.linalg.vector_norm(mean - centroids[where, :], axis=1)))
        centroids[where, :] = mean
        before = xp.asarray(nearest.labels, copy=True)
        nearest.update(centroids, moved)
        count, n_empty = _fill_empty_clusters(points, nearest, centroids)
        moved = _update_sums(points, total, before, nearest.labels)
        if shift**2 < tol and not n_empty:
            break
    return nearest.labels, centroids, n_iter


def _update_sums(points: Points, total: Centroids, before: RowClusters, after: RowClusters) -> Int[Array, " moved"]:
    """Move rows that changed from the sum of the old cluster to that of the new one; returns the affected clusters."""
    xp = array_namespace(before)
    (changed,) = xp.nonzero(before != after)
    if not changed.shape[0]:
        return np.zeros(0, dtype=np.int64)
    rows, old, new = xp.take(points.x, changed, axis=0), xp.take(before, changed), xp.take(after, changed)
    moved = np.union1d(to_numpy(old), to_numpy(new))
    where = like(moved, rows)
    gained, lost = (sum_by_group(rows, xp.searchsorted(where, cluster), len(moved)) for cluster in (new, old))
    total[where, :] += gained - lost
    return moved


def _fill_empty_clusters(
    points: Points, nearest: NearestCentroids, centroids: Centroids
) -> tuple[Int[Array, " clusters"], int]:
    """Give every empty cluster the row farthest from its centroid, from a cluster that keeps another member.

    Returns the number of members of each cluster, and how many clusters were empty.
    """
    labels = to_numpy(nearest.labels)
    count = np.bincount(labels, minlength=len(centroids)) + points.labeled_count
    empty = np.flatnonzero(count == 0).tolist()
    n_empty = len(empty)
    if not empty:
        return count, 0
    labels = labels.copy()
    for row in np.argsort(-to_numpy(nearest.own + points.norms), kind="stable"):
        if not empty:
            break
        if count[labels[row]] > 1:
            cluster = empty.pop()
            count[labels[row]] -= 1
            count[cluster] += 1
            nearest.assign(int(row), cluster, -float(points.norms[row]))
            centroids[cluster, :] = points.x[row, :]
    return count, n_empty


def nearest_two(x: Rows, centroids: Centroids) -> tuple[RowClusters, RowScores, RowScores]:
    """The nearest centroid of each row, its score and that of the second nearest (`scores`)."""
    xp = array_namespace(x)
    n = x.shape[0]
    label, first, second = (xp.zeros(n, dtype=kind, device=x.device) for kind in (xp.int64, x.dtype, x.dtype))
    for rows in row_blocks(n, centroids.shape[0]):
        label[rows], first[rows], second[rows] = _two_smallest(scores(x[rows, :], centroids))
    return label, first, second


def scores(x: Rows, centroids: Centroids) -> Float[Any, "rows clusters"]:
    """||c_k||^2 - 2 x_i . c_k: the squared distance without ||x_i||^2, which is the same for all k."""
    score = x @ (-2 * centroids).T
    score += squared_norms(centroids)[None, :]
    return score


def _two_smallest(score: Float[Any, "rows clusters"]) -> tuple[RowClusters, RowScores, RowScores]:
    """The place of the smallest value of each row, that value and the second smallest; overwrites `score`."""
    xp = array_namespace(score)
    row = xp.arange(score.shape[0], device=score.device)
    label = xp.argmin(score, axis=1)
    first = score[row, label]
    score[row, label] = xp.inf
    return label, first, xp.min(score, axis=1)


class NearestCentroids:
    """The nearest centroid of each row, updated while centroids move.

    `labels` and `own` are the cluster of each row and its score; `rival` is a lower bound of the scores of all other
    clusters. In late iterations few clusters move, and only their columns are computed. Only a row whose own centroid
    moved past its rival is compared with every centroid again. The result is that of a full search, up to rounding.
    """

    def __init__(self, x: Rows, centroids: Centroids):
        self.x, self.xp = x, array_namespace(x)
        self.labels, self.own, self.rival = nearest_two(x, centroids)

    def update(self, centroids: Centroids, moved: Int[Array, " moved"]) -> None:
        """Find the nearest centroids after the clusters `moved` have new centroids."""
        if len(moved) == centroids.shape[0]:
            self.labels, self.own, self.rival = nearest_two(self.x, centroids)
            return
        xp, moved_here = self.xp, like(moved, self.x)
        position = np.full(centroids.shape[0], -1)
        position[moved] = np.arange(len(moved))
        column = xp.take(like(position, self.x), self.labels)  # of a row's own cluster among the moved, or -1
        moved_centroids = xp.take(centroids, moved_here, axis=0)
        for rows in row_blocks(self.x.shape[0], len(moved)):
            self._compare(rows, scores(self.x[rows, :], moved_centroids), column[rows], moved_here)
        (stale,) = xp.nonzero(self.own > self.rival)
        if stale.shape[0]:
            two = nearest_two(xp.take(self.x, stale, axis=0), centroids)
            self.labels[stale], self.own[stale], self.rival[stale] = two

    def assign(self, row: int, cluster: int, score: float) -> None:
        """Set the cluster of one row; the next update compares it with every centroid."""
        self.labels[row], self.own[row], self.rival[row] = cluster, score, -self.xp.inf

    def _compare(self, rows: slice, score: Float[Any, "rows moved"], column: RowClusters, moved: Any) -> None:
        xp = self.xp
        is_own_moved = column >= 0
        row = xp.arange(score.shape[0], device=score.device)
        own = xp.where(is_own_moved, score[row, xp.where(is_own_moved, column, 0 * column)], self.own[rows])
        best, first, second = _two_smallest(score)
        is_better = first < own
        # The cluster that the row leaves or does not enter is a rival. If it stays in a moved cluster, that is `first`.
        is_same = is_own_moved & ~is_better
        left = xp.where(is_better, xp.minimum(second, own), xp.where(is_same, second, first))
        self.rival[rows] = xp.minimum(self.rival[rows], left)
        self.labels[rows] = xp.where(is_better, xp.take(moved, best), self.labels[rows])
        self.own[rows] = xp.where(is_better, first, own)


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
        xp = array_namespace(x)
        self.x, self.norms = x, squared_norms(x)
        self.restarts, self.n_candidates = restarts, n_candidates
        self.has_centroid = given.shape[0] > 0
        nearest = xp.full((x.shape[0],), xp.inf, dtype=x.dtype, device=x.device)
        for rows in row_blocks(x.shape[0], given.shape[0]) if self.has_centroid else ():
            nearest[rows] = xp.min(_distances(x[rows, :], self.norms[rows], given), axis=1)
        self.distance = xp.stack([nearest] * len(restarts))  # (restarts, rows)
        self.picks: list[Int[Array, " restarts"]] = []

    def prefix(self, n: int) -> Int[Array, "restarts prefix"]:
        """The first n rows of each restart's order; fewer if there are fewer distinct rows."""
        xp = array_namespace(self.x)
        while len(self.picks) < n and bool(xp.all(xp.any(self.distance > 0, axis=1))):
            self._step()
        return np.array(self.picks[:n], dtype=np.int64).reshape(-1, len(self.restarts)).T

    def _step(self) -> None:
        xp = array_namespace(self.x)
        n_restarts, n_candidates = len(self.restarts), self.n_candidates
        weight = self.distance if self.has_centroid or self.picks else xp.ones_like(self.distance)
        uniform = np.stack([restart.random(n_candidates) for restart in self.restarts])
        candidates = _draw(weight, uniform)
        column = _distances(self.x, self.norms, xp.take(self.x, like(candidates.ravel(), self.x), axis=0)).T
        left = xp.minimum(self.distance[:, None, :], xp.reshape(column, (n_restarts, n_candidates, -1)))
        restart = np.arange(n_restarts)
        best = to_numpy(xp.argmin(xp.sum(left, axis=2, dtype=xp.float64), axis=1)) if n_candidates > 1 else 0 * restart
        self.picks.append(candidates[restart, best])
        self.distance = left[like(restart, left), like(best, left), :]


def _distances(x: Rows, norms: RowScores, centroids: Centroids) -> Float[Any, "rows clusters"]:
    """||x_i - c||^2, exactly 0 where the two are equal up to rounding."""
    xp = array_namespace(x)
    scale = norms[:, None] + squared_norms(centroids)[None, :]
    distance = scale - 2 * (x @ centroids.T)
    # Rounding leaves about eps * scale between duplicates; with that as a weight, a duplicate could be drawn.
    tiny = 32 * xp.finfo(x.dtype).eps
    return xp.where(distance > tiny * scale, distance, xp.zeros_like(distance))


def _draw(weight: Float[Any, "restarts rows"], uniform: Float[Array, "restarts _"]) -> Int[Array, "restarts _"]:
    """The first row at which the running sum of a restart's weights passes uniform * total."""
    xp = array_namespace(weight)
    running = xp.cumulative_sum(weight, axis=1, dtype=xp.float64)
    target = like(uniform, weight) * running[:, -1:]
    passed = [to_numpy(xp.searchsorted(running[r, :], target[r, :], side="right")) for r in range(len(uniform))]
    return np.minimum(np.stack(passed), weight.shape[1] - 1)
