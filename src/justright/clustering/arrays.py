"""The few steps that numpy and torch write differently; all else goes through the array API.

Torch is never imported here: a tensor brings its own namespace, and its results stay on its device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from jaxtyping import Float, Int
from scipy.sparse import csc_array

_BLOCK_NUMBERS = 1 << 22  # a block of so many scores (16 MB) stays in the cache between the product and its minimum
_SUM_ROWS = 1 << 13  # so few float32 numbers are added up before the sum goes on in float64: rounding cannot pile up


def to_numpy(array: Any) -> Any:
    """The same numbers in the memory of the CPU."""
    return array.detach().cpu().numpy() if is_torch_array(array) else np.asarray(array)


def like(array: Any, reference: Any) -> Any:
    """The numbers of a numpy array in the library and on the device of `reference`."""
    return array_namespace(reference).asarray(array, device=reference.device)


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices over the rows, each small enough for its products with `n_columns` vectors."""
    step = max(1, _BLOCK_NUMBERS // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def squared_norms(x: Float[Any, "rows dim"]) -> Float[Any, " rows"]:
    """||x_i||^2 for each row."""
    return array_namespace(x).vecdot(x, x, axis=-1)


def sum_by_group(x: Float[Any, "rows dim"], group: Int[Any, " rows"], n_groups: int) -> Float[Any, "{n_groups} dim"]:
    """The float64 sums of the rows of each group: sum_i 1(group_i = k) x_i.

    A product with the one-hot matrix would cost as much as all distances; a sparse one costs one pass over x.
    """
    xp = array_namespace(x)
    total = xp.zeros((n_groups, x.shape[1]), dtype=xp.float64, device=x.device)
    for start in range(0, x.shape[0], _SUM_ROWS):
        rows, where = x[start : start + _SUM_ROWS, :], group[start : start + _SUM_ROWS]
        if is_torch_array(x):
            part = xp.zeros((n_groups, x.shape[1]), dtype=x.dtype, device=x.device)
            total += part.index_add_(0, where, rows)
        else:
            n = len(where)
            one_hot = csc_array((np.ones(n, dtype=x.dtype), where, np.arange(n + 1)), shape=(n_groups, n))
            total += one_hot @ rows
    return total
