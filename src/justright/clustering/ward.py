"""Mean shift and Ward's tree: how CMS finds clusters once it is trained."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import linkage

from justright.clustering.arrays import row_blocks
from justright.geometry import unit_rows
from justright.utils.types import Array


def mean_shifted(x: Float[Array, "images dim"], n_neighbors: int, share: float) -> Float[Array, "images dim"]:
    """Each unit row one step towards its neighbors, all of them at once.

        x_i <- u_i / |u_i|,     u_i = (1 - share) x_i + share * mean of the n nearest other rows

    A row is not its own neighbor, and nobody sees a row that has moved already.
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
    """Which two clusters become one, step by step: always those that add least to the sum of squares.

    Images are clusters 0 to n - 1; step s makes cluster n + s. It looks at all pairs: 10,000 images take about 1 GB.
    """
    return linkage(x, "ward")[:, :2].astype(np.int64) if len(x) > 1 else np.zeros((0, 2), dtype=np.int64)


def cut_tree(merges: Int[Array, "merges 2"], n_clusters: int) -> Int[Array, " images"]:
    """The cluster of each image where the tree has `n_clusters`, numbered from 0 without gaps."""
    n_images = len(merges) + 1
    root = np.arange(2 * n_images - 1)
    for step in range(n_images - n_clusters - 1, -1, -1):  # from the last merge down: roots are known above
        root[merges[step]] = root[n_images + step]
    return np.unique(root[:n_images], return_inverse=True)[1]
