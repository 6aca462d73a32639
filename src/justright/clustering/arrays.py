"""Functions on the rows of arrays that several kinds of clustering need."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csc_array

from justright.utils.types import Array

Rows = Float[Array, "rows dim"]
RowScores = Float[Array, " rows"]
RowClusters = Int[Array, " rows"]
Centroids = Float[Array, "clusters dim"]

_BLOCK_NUMBERS = 1 << 22  # a block of this many scores (16 MB) stays in the cache between the product and its minimum
_SUM_ROWS = 1 << 13  # float32 rows that are summed before the sum continues in float64, which limits rounding


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices over the rows, each small enough for its products with `n_columns` vectors."""
    step = max(1, _BLOCK_NUMBERS // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def squared_norms(x: Rows) -> RowScores:
    """||x_i||^2 for each row."""
    return np.vecdot(x, x)


def sum_by_group(x: Rows, group: RowClusters, n_groups: int) -> Float[Array, "{n_groups} dim"]:
    """The float64 sums of the rows of each group: sum_i 1(group_i = k) x_i.

    A product with the one-hot matrix would cost as much as all distances; a sparse one costs one pass over x.
    """
    total = np.zeros((n_groups, x.shape[1]))
    for start in range(0, len(x), _SUM_ROWS):
        rows, groups = x[start : start + _SUM_ROWS], group[start : start + _SUM_ROWS]
        n = len(groups)
        total += csc_array((np.ones(n, dtype=x.dtype), groups, np.arange(n + 1)), shape=(n_groups, n)) @ rows
    return total
