"""Ward's clustering: of rows without labels (after mean shift, for CMS), and of rows some of which are labeled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import linkage

from justright.clustering.arrays import row_blocks, squared_norms, sum_by_group
from justright.geometry import unit_rows
from justright.utils.parallel import blas_threads
from justright.utils.types import UNLABELED, Array

MOST_ROWS = 6_000  # of `constrained_ward`, which keeps all pairs in memory: 300 MB


def mean_shifted(x: Float[Array, "images dim"], n_neighbors: int, share: float) -> Float[Array, "images dim"]:
    """Move each unit row one step towards its neighbors, all rows at once.

        x_i <- u_i / |u_i|,     u_i = (1 - share) x_i + share * mean of the n nearest other rows

    A row is not its own neighbor; neighbors are taken from the rows before the step.
    """
    n_neighbors = min(n_neighbors, len(x) - 1)
    if not n_neighbors:
        return x
    moved = np.empty_like(x)
    for rows in row_blocks(len(x), len(x)):
        similarity = x[rows] @ x.T
        similarity[np.arange(len(similarity)), np.arange(rows.start, rows.stop)] = -np.inf
        nearest = np.argpartition(-similarity, n_neighbors - 1, axis=1)[:, :n_neighbors]
        moved[rows] = (1 - share) * x[rows] + share * x[nearest].mean(axis=1)
    return unit_rows(moved)


def ward_merges(x: Float[Array, "images dim"]) -> Int[Array, "merges 2"]:
    """The two clusters of each merge: always those that add least to the sum of squares.

    Images are clusters 0 to n - 1; merge s makes cluster n + s. It needs all pairs: 10,000 images take about 1 GB.
    """
    return linkage(x, "ward")[:, :2].astype(np.int64) if len(x) > 1 else np.zeros((0, 2), dtype=np.int64)


def cut_tree(merges: Int[Array, "merges 2"], n_clusters: int) -> Int[Array, " images"]:
    """The cluster of each image in a tree that is cut at `n_clusters`, numbered from 0 without gaps."""
    n_images = len(merges) + 1
    root = np.arange(2 * n_images - 1)
    for step in range(n_images - n_clusters - 1, -1, -1):  # from the last merge down
        root[merges[step]] = root[n_images + step]
    return np.unique(root[:n_images], return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class WardClusters:
    """Clusters: known classes first, then the others, the largest first.

    Attributes:
        labels: the cluster of each row.
        inner: cost of the last merge within each cluster, as a share of the costliest merge. Near 1 the cluster is
            nearly two clusters.
    """

    labels: Int[Array, " rows"]
    inner: Float[Array, " clusters"]


def constrained_ward(x: Float[Array, "rows dim"], labels: Int[Array, " rows"], n_clusters: int) -> WardClusters:
    """Merge the two clusters of least cost until `n_clusters` are left.

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
    cluster, inner = tree.clusters()
    return WardClusters(cluster[atom], inner)


class _Merging:
    """Costs of all pairs of clusters, and the cheapest partner of each."""

    def __init__(self, mean: Float[Array, "atoms dim"], size: Float[Array, " atoms"], n_known: int):
        n = len(mean)
        self.size, self.n_known, self.n_left = size, n_known, n
        with blas_threads(1):  # the result does not depend on the number of threads
            cost = mean @ mean.T
        norm = squared_norms(mean)
        for row in range(n):  # row by row: a second table of all pairs would double the memory
            squared = np.maximum(norm[row] + norm - 2 * cost[row], 0)
            cost[row] = size[row] * size / (size[row] + size) * squared
        np.fill_diagonal(cost, np.inf)
        cost[:n_known, :n_known] = np.inf
        self.cost = cost
        self.best = cost.argmin(axis=1)  # the cheapest partner of each cluster
        self.least = cost[np.arange(n), self.best]  # the cost of merging with it
        self.parent = np.arange(n)  # the cluster that each was merged into
        self.is_left = np.ones(n, dtype=bool)
        self.last = np.zeros(n)  # the cost of the last merge within each cluster
        self.highest = 0.0  # the cost of the costliest merge

    def merge(self) -> bool:
        """Merge the cheapest pair; False where no merge is allowed."""
        first = int(self.least.argmin())
        if not np.isfinite(price := self.least[first]):
            return False
        first, second = sorted((first, int(self.best[first])))  # a known class keeps its number
        size, cost = self.size, self.cost
        # Lance and Williams: the cost of merging with the two together, from the costs of merging with each
        weighed = (size[first] + size) * cost[first] + (size[second] + size) * cost[second] - size * price
        row = weighed / (size[first] + size[second] + size)
        row[~self.is_left] = row[first] = row[second] = np.inf
        if first < self.n_known:
            row[: self.n_known] = np.inf
        size[first] += size[second]
        self.parent[second] = first
        self.is_left[second] = False
        self.least[second] = np.inf
        cost[second] = cost[:, second] = np.inf
        cost[first] = cost[:, first] = row
        is_closer = row < self.least
        self.best[is_closer] = first
        self.least[is_closer] = row[is_closer]
        is_stale = self.is_left & np.isin(self.best, (first, second)) & ~is_closer
        stale = np.flatnonzero(is_stale | (np.arange(len(row)) == first))
        self.best[stale] = cost[stale].argmin(axis=1)
        self.least[stale] = cost[stale, self.best[stale]]
        self.last[first] = price
        self.highest = max(self.highest, price)
        self.n_left -= 1
        return True

    def clusters(self) -> tuple[Int[Array, " atoms"], Float[Array, " clusters"]]:
        """The cluster of each atom, and `inner` of each cluster."""
        root = self.parent
        while (above := root[root]).tolist() != root.tolist():
            root = above
        others = self.n_known + np.flatnonzero(self.is_left[self.n_known :])
        others = others[np.argsort(-self.size[others], kind="stable")]
        kept = np.concatenate([np.arange(self.n_known), others])
        place = np.full(len(root), -1)
        place[kept] = np.arange(len(kept))
        return place[root], self.last[kept] / (self.highest or 1.0)
