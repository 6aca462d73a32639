"""Ward's clustering with labeled rows: those of a class stay together, and two classes never become one cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.clustering.arrays import squared_norms, sum_by_group
from justright.utils.parallel import blas_threads
from justright.utils.types import UNLABELED, Array

MOST_ROWS = 6_000  # all pairs are in memory: 300 MB


@dataclass(frozen=True, eq=False)
class WardClusters:
    """Clusters, known classes first, then the others with the largest first.

    Attributes:
        labels: the cluster of each row.
        inner: of each cluster, the cost of the last merge within it, as a share of the costliest merge of all. Near 1
            it is nearly two clusters.
        outer: of each cluster, the cost of merging it with the cheapest other one, by the same measure. Near 1 it is
            nearly one cluster with that.
    """

    labels: Int[Array, " rows"]
    inner: Float[Array, " clusters"]
    outer: Float[Array, " clusters"]


def constrained_ward(x: Float[Array, "rows dim"], labels: Int[Array, " rows"], n_clusters: int) -> WardClusters:
    """Merge the two clusters that cost least until `n_clusters` are left.

        cost(A, B) = |A| |B| / (|A| + |B|) * |mean(A) - mean(B)|^2

    The labeled rows of a class are one cluster from the start, and two classes never merge. The result has more than
    `n_clusters` clusters if there are more classes, and fewer if there are fewer rows.

    Parameters:
        labels: the class of each row, numbered from 0 without gaps, -1 for unlabeled.
    """
    n_known = int(labels.max(initial=UNLABELED)) + 1
    atom = labels.astype(np.int64)
    is_free = atom == UNLABELED
    atom[is_free] = n_known + np.arange(is_free.sum())
    n_atoms = n_known + int(is_free.sum())
    size = np.bincount(atom, minlength=n_atoms).astype(np.float64)
    tree = _Merging(sum_by_group(np.asarray(x, dtype=np.float64), atom, n_atoms) / size[:, None], size, n_known)
    while tree.n_left > n_clusters and tree.merge():
        pass
    found, inner, outer = tree.clusters()
    return WardClusters(found[atom], inner, outer)


class _Merging:
    """Costs of all pairs, of which each cluster remembers its cheapest."""

    def __init__(self, mean: Float[Array, "atoms dim"], size: Float[Array, " atoms"], n_known: int):
        n = len(mean)
        self.size, self.n_known, self.n_left = size, n_known, n
        with blas_threads(1):  # the bytes do not depend on how many threads there are
            cost = mean @ mean.T
        norm = squared_norms(mean)
        for row in range(n):  # row by row: a second table of all pairs would double the memory
            apart = np.maximum(norm[row] + norm - 2 * cost[row], 0)
            cost[row] = size[row] * size / (size[row] + size) * apart
        np.fill_diagonal(cost, np.inf)
        cost[:n_known, :n_known] = np.inf
        self.cost, self.parent, self.last = cost, np.arange(n), np.zeros(n)
        self.is_left, self.highest = np.ones(n, dtype=bool), 0.0
        self.best = cost.argmin(axis=1)
        self.least = cost[np.arange(n), self.best]

    def merge(self) -> bool:
        """Merge the cheapest pair; False where no merge is allowed."""
        first = int(self.least.argmin())
        if not np.isfinite(price := self.least[first]):
            return False
        first, second = sorted((first, int(self.best[first])))  # a known class keeps its place, the first one
        size, cost = self.size, self.cost
        # Lance and Williams: the cost of merging with the two together, from the costs of merging with each
        weighed = (size[first] + size) * cost[first] + (size[second] + size) * cost[second] - size * price
        row = weighed / (size[first] + size[second] + size)
        row[~self.is_left] = row[first] = row[second] = np.inf
        if first < self.n_known:
            row[: self.n_known] = np.inf
        size[first] += size[second]
        self.parent[second], self.is_left[second], self.least[second] = first, False, np.inf
        cost[second] = cost[:, second] = np.inf
        cost[first] = cost[:, first] = row
        is_closer = row < self.least
        self.best[is_closer], self.least[is_closer] = first, row[is_closer]
        is_stale = self.is_left & np.isin(self.best, (first, second)) & ~is_closer
        stale = np.flatnonzero(is_stale | (np.arange(len(row)) == first))
        self.best[stale] = cost[stale].argmin(axis=1)
        self.least[stale] = cost[stale, self.best[stale]]
        self.last[first] = price
        self.highest = max(self.highest, price)
        self.n_left -= 1
        return True

    def clusters(self) -> tuple[Int[Array, " atoms"], Float[Array, " clusters"], Float[Array, " clusters"]]:
        """The cluster of each atom, and of each cluster `inner` and `outer`."""
        root = self.parent
        while (above := root[root]).tolist() != root.tolist():
            root = above
        others = self.n_known + np.flatnonzero(self.is_left[self.n_known :])
        others = others[np.argsort(-self.size[others], kind="stable")]
        kept = np.concatenate([np.arange(self.n_known), others])
        place = np.full(len(root), -1)
        place[kept] = np.arange(len(kept))
        scale = self.highest or 1.0
        return place[root], self.last[kept] / scale, self.least[kept] / scale
