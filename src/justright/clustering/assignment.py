"""Each image to its nearest centroid, with work only where something moved."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.clustering.arrays import like, row_blocks, squared_norms
from justright.clustering.checks import Centroids, RowClusters, Rows, RowScores
from justright.utils.types import Array


def nearest_two(x: Rows, centroids: Centroids) -> tuple[RowClusters, RowScores, RowScores]:
    """The nearest centroid of each row, its score and that of the second nearest.

    score_ik = ||c_k||^2 - 2 x_i . c_k, the squared distance without its part ||x_i||^2 that is alike for all k.
    """
    xp = array_namespace(x)
    n = x.shape[0]
    label, first, second = (xp.zeros(n, dtype=kind, device=x.device) for kind in (xp.int64, x.dtype, x.dtype))
    for rows in row_blocks(n, centroids.shape[0]):
        label[rows], first[rows], second[rows] = _two_smallest(scores(x[rows, :], centroids))
    return label, first, second


def scores(x: Rows, centroids: Centroids) -> Float[Any, "rows clusters"]:
    """||c_k||^2 - 2 x_i . c_k by one matrix product."""
    score = x @ (-2 * centroids).T
    score += squared_norms(centroids)[None, :]
    return score


def _two_smallest(score: Float[Any, "rows clusters"]) -> tuple[RowClusters, RowScores, RowScores]:
    """Where each row is smallest, that value and the next; overwrites `score`."""
    xp = array_namespace(score)
    row = xp.arange(score.shape[0], device=score.device)
    label = xp.argmin(score, axis=1)
    first = score[row, label]
    score[row, label] = xp.inf
    return label, first, xp.min(score, axis=1)


class NearestAssignment:
    """Which centroid is nearest to each row, kept up to date while centroids move.

    Besides the score of its own cluster a row remembers `rival`, which no other cluster's score is below. In late
    iterations few clusters change, so only their columns are computed. A row whose own centroid moved away past
    its rival is the only one that must look at every centroid again. The answer is that of a full search, up to
    rounding in the products.

    Attributes: labels and own, the cluster of each row and its score.
    """

    def __init__(self, x: Rows, centroids: Centroids):
        self.x, self.xp = x, array_namespace(x)
        self.labels, self.own, self.rival = nearest_two(x, centroids)

    def update(self, centroids: Centroids, moved: Int[Array, " moved"]) -> None:
        """Take note that the centroids of the clusters `moved` have new places."""
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
            found = nearest_two(xp.take(self.x, stale, axis=0), centroids)
            self.labels[stale], self.own[stale], self.rival[stale] = found

    def replace(self, row: int, cluster: int, score: float) -> None:
        """Put one row into a cluster by hand; its next look is at every centroid."""
        self.labels[row], self.own[row], self.rival[row] = cluster, score, -self.xp.inf

    def _compare(self, rows: slice, score: Float[Any, "rows moved"], column: RowClusters, moved: Any) -> None:
        xp = self.xp
        is_own_moved = column >= 0
        row = xp.arange(score.shape[0], device=score.device)
        own = xp.where(is_own_moved, score[row, xp.where(is_own_moved, column, 0 * column)], self.own[rows])
        best, first, second = _two_smallest(score)
        is_better = first < own
        # What the row leaves or does not enter is a rival. If it stays in a moved cluster, that cluster is `first`.
        is_same = is_own_moved & ~is_better
        left = xp.where(is_better, xp.minimum(second, own), xp.where(is_same, second, first))
        self.rival[rows] = xp.minimum(self.rival[rows], left)
        self.labels[rows] = xp.where(is_better, xp.take(moved, best), self.labels[rows])
        self.own[rows] = xp.where(is_better, first, own)
