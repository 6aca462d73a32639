"""Label spreading: categories propagate over a graph of nearest neighbors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from justright.clustering.arrays import row_blocks
from justright.geometry import unit_rows
from justright.utils.parallel import blas_threads, in_threads, n_cores
from justright.utils.types import UNLABELED, Array, Labels

POWER = 3  # of the cosine: half the similarity counts an eighth
SAME = 0.9995  # least cosine of a row with its copy in half precision
N_ROUNDS = 20  # later rounds change nothing


class Neighbors(NamedTuple):
    """The nearest rows of each image and their weights, which sum to 1, or to 0 if none is similar."""

    rows: Int[Array, "images neighbors"]
    weight: Float[Array, "images neighbors"]
    similarity: Float[Array, " images"]  # the mean cosine to them


def nearest_rows(
    x: Float[Array, "images dim"],
    others: Float[Array, "rows dim"],
    n_neighbors: int,
    own: Int[Array, " images"] | None = None,
) -> Neighbors:
    """The rows of `others` with the largest cosine to each row of x.

        w_ij = max(cos(x_i, x_j), 0)^3 / sum over the neighbors of the same

    own: the row of each image among the others, which is not its own neighbor; None if x are other images. Then a row
        that equals the image, to about a thousandth, is not its neighbor either.
    """
    x, others = unit_rows(x), unit_rows(others)
    n = max(1, min(n_neighbors, len(others) - 1))

    def block(rows: slice) -> tuple[Array, Array]:
        cosine = x[rows] @ others.T
        place, same = np.arange(len(cosine)), cosine.argmax(axis=1) if own is None else own[rows]
        if own is None:
            is_copy = cosine[place, same] > SAME
            place, same = place[is_copy], same[is_copy]
        cosine[place, same] = -2  # less than any cosine
        nearest = np.argpartition(-cosine, n - 1, axis=1)[:, :n]
        return nearest, np.take_along_axis(cosine, nearest, axis=1)

    with blas_threads(1):  # one block per core: the result does not depend on the number of cores
        blocks = list(in_threads(block, row_blocks(len(x), len(others)), n_cores()))
    if not blocks:
        return Neighbors(np.zeros((0, n), dtype=np.int64), np.zeros((0, n)), np.zeros(0))
    nearest, cosine = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    weight = np.maximum(cosine, 0.0) ** POWER
    total = weight.sum(axis=1, keepdims=True)
    return Neighbors(nearest, weight / np.where(total > 0, total, 1.0), cosine.mean(axis=1))


def spread(
    start: Int[Array, " rows"],
    fixed: Int[Array, " rows"],
    neighbors: Neighbors,
    n_categories: int,
    share: float,
) -> Float[Array, "rows categories"]:
    """Spread categories to neighbors, round by round (Zhou et al., NeurIPS 2003).

        P <- (1 - share) Y + share W P,     P = Y in the first round and, in every round, for labeled rows

    Parameters:
        start: the first category of each row; Y is its one-hot matrix.
        fixed: the class of each labeled row, which stays; -1 for all others.
        share: weight of the neighbors.
    """
    n_rows = len(start)
    is_fixed = fixed != UNLABELED
    y = np.zeros((n_rows, n_categories), dtype=np.float32)
    y[np.arange(n_rows), np.where(is_fixed, fixed, start)] = 1
    row = np.repeat(np.arange(n_rows), neighbors.rows.shape[1])
    entries = neighbors.weight.ravel().astype(np.float32), (row, neighbors.rows.ravel())
    graph = csr_array(entries, shape=(n_rows, n_rows))
    p = y
    for _ in range(N_ROUNDS):
        p = (1 - share) * y + share * (graph @ p)
        p[is_fixed] = y[is_fixed]
    return p


def share_alike(category: Labels, neighbors: Neighbors, others: Int[Array, " rows"]) -> Float[Array, " images"]:
    """The weighted share of an image's neighbors with its category."""
    return np.sum(neighbors.weight * (others[neighbors.rows] == category[:, None]), axis=1)
