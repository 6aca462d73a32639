"""Array functions that numpy and torch write differently; all else uses the array API.

Torch is never imported here: a tensor brings its own namespace, and results stay on its device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from jaxtyping import Float, Int
from scipy.sparse import csc_array

Rows = Float[Any, "rows dim"]  # of numpy or torch, as are the others
RowScores = Float[Any, " rows"]
RowClusters = Int[Any, " rows"]
Centroids = Float[Any, "clusters dim"]

_BLOCK_NUMBERS = 1 << 22  # a block of this many scores (16 MB) stays in the cache between the product and its minimum
_SUM_ROWS = 1 << 13  # float32 rows that are summed before the sum continues in float64, which limits rounding


def like(array: Any, reference: Any) -> Any:
    """Convert a numpy array to the library and device of `reference`."""
    return array_namespace(reference).asarray(array, device=reference.device)


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices over the rows, each small enough for its products with `n_columns` vectors."""
    step = max(1, _BLOCK_NUMBERS // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def squared_norms(x: Rows) -> RowScores:
    """||x_i||^2 for each row."""
    return array_namespace(x).vecdot(x, x, axis=-1)


def sum_by_group(x: Rows, group: RowClusters, n_groups: int) -> Float[Any, "{n_groups} dim"]:
    """The float64 sums of the rows of each group: sum_i 1(group_i = k) x_i.

    A product with the one-hot matrix would cost as much as all distances; a sparse one costs one pass over x.
    """
    xp = array_namespace(x)
    total = xp.zeros((n_groups, x.shape[1]), dtype=xp.float64, device=x.device)
    for start in range(0, x.shape[0], _SUM_ROWS):
        rows, groups = x[start : start + _SUM_ROWS, :], group[start : start + _SUM_ROWS]
        if is_torch_array(x):
            part = xp.zeros((n_groups, x.shape[1]), dtype=x.dtype, device=x.device)
            total += part.index_add_(0, groups, rows)
        else:
            n = len(groups)
            one_hot = csc_array((np.ones(n, dtype=x.dtype), groups, np.arange(n + 1)), shape=(n_groups, n))
            total += one_hot @ rows
    return total
