"""Lloyd's iterations when some rows already know their cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Int

from justright.clustering.arrays import like, squared_norms, sum_by_group, to_numpy
from justright.clustering.assignment import NearestAssignment
from justright.clustering.checks import Centroids, RowClusters, Rows, RowScores
from justright.utils.types import Array


@dataclass(frozen=True, eq=False)
class Points:
    """The rows to assign, and what the labeled rows add to each cluster.

    Labeled rows never move, so their sums stand for them: sum, count and squared norms per cluster.
    """

    x: Rows
    norms: RowScores
    labeled_sum: Centroids
    labeled_count: Int[Array, " clusters"]
    labeled_norm: float


@dataclass(frozen=True, eq=False)
class LloydFit:
    """Where one start led: each row's cluster, the centroids, their inertia and the number of iterations."""

    labels: RowClusters
    centroids: Centroids
    inertia: float
    n_iter: int


def lloyd(points: Points, centroids: Centroids, max_iter: int, tol: float) -> LloydFit:
    """Move centroids to the mean of their members and members to their nearest centroid, in turn.

    Neither half can raise the inertia sum_i ||x_i - c_i||^2 over labeled and unlabeled rows. Ends when no row
    changes, when (sum_k ||shift_k||)^2 < tol as in GCD, or after max_iter rounds.
    """
    xp, n_clusters = array_namespace(centroids), len(centroids)
    total = xp.astype(points.labeled_sum, xp.float64, copy=True)
    centroids = xp.asarray(centroids, copy=True)
    moved, n_iter = np.arange(n_clusters), 0
    assignment = NearestAssignment(points.x, centroids)
    count, _ = _fill_empty_clusters(points, assignment, centroids)
    total += sum_by_group(points.x, assignment.labels, n_clusters)
    while n_iter < max_iter and len(moved):
        n_iter += 1
        where = like(moved, centroids)
        mean = xp.astype(total[where, :] / like(count[moved].astype(np.float64), total)[:, None], centroids.dtype)
        shift = float(xp.sum(xp.linalg.vector_norm(mean - centroids[where, :], axis=1)))
        centroids[where, :] = mean
        before = xp.asarray(assignment.labels, copy=True)
        assignment.update(centroids, moved)
        count, n_empty = _fill_empty_clusters(points, assignment, centroids)
        moved = _update_sums(points, total, before, assignment.labels)
        if shift**2 < tol and not n_empty:
            break
    return LloydFit(assignment.labels, centroids, _inertia(points, centroids, assignment.own), n_iter)


def _update_sums(points: Points, total: Centroids, before: RowClusters, after: RowClusters) -> Int[Array, " moved"]:
    """Carry the rows that changed from their old cluster to the new one; the clusters this touched."""
    xp = array_namespace(before)
    (changed,) = xp.nonzero(before != after)
    if not changed.shape[0]:
        return np.zeros(0, dtype=np.int64)
    rows, old, new = xp.take(points.x, changed, axis=0), xp.take(before, changed), xp.take(after, changed)
    moved = np.union1d(to_numpy(old), to_numpy(new))
    where = like(moved, rows)
    gained, lost = (sum_by_group(rows, xp.searchsorted(where, each), len(moved)) for each in (new, old))
    total[where, :] += gained - lost
    return moved


def _fill_empty_clusters(
    points: Points, assignment: NearestAssignment, centroids: Centroids
) -> tuple[Int[Array, " clusters"], int]:
    """Give every empty cluster the row farthest from its own centroid.

    The row comes from a cluster that keeps at least one other member, so that no hole moves on. Returns the number
    of members of each cluster, and how many clusters were empty.
    """
    labels = to_numpy(assignment.labels)
    count = np.bincount(labels, minlength=len(centroids)) + points.labeled_count
    empty = np.flatnonzero(count == 0).tolist()
    n_empty = len(empty)
    if not empty:
        return count, 0
    labels = labels.copy()
    for row in np.argsort(-to_numpy(assignment.own + points.norms), kind="stable"):
        if not empty:
            break
        if count[labels[row]] > 1:
            cluster = empty.pop()
            count[labels[row]] -= 1
            count[cluster] += 1
            assignment.replace(int(row), cluster, -float(points.norms[row]))
            centroids[cluster, :] = points.x[row, :]
    return count, n_empty


def _inertia(points: Points, centroids: Centroids, own: RowScores) -> float:
    xp = array_namespace(centroids)
    unlabeled = xp.sum(xp.clip(own + points.norms, 0, None), dtype=xp.float64)
    wide = xp.astype(centroids, xp.float64)
    count = like(points.labeled_count.astype(np.float64), wide)
    labeled = xp.sum(count * squared_norms(wide)) - 2 * xp.sum(wide * points.labeled_sum)
    return float(unlabeled) + float(labeled) + points.labeled_norm
