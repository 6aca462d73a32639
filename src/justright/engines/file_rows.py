"""Rows of a file by name: shards that cost nothing to send, and are read where they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from justright.types import Array

SHARD_ROWS = 32_768
"""Rows of a shard: 50 MB in half precision at 768 dimensions, against 6 MB that a thousand class sums take."""


@runtime_checkable
class ArrayLike(Protocol):
    """Anything that numpy can read as an array: a numpy array, a memory map, a torch tensor."""

    def __array__(self, *args: Any, **kwargs: Any) -> Array: ...


@dataclass(frozen=True)
class FileRows:
    """Consecutive rows of an array in a file. Numpy reads it as the array, by a memory map made anew each time."""

    path: Path
    dtype: str
    offset: int
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        rows = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        return np.array(rows, dtype=dtype or rows.dtype, copy=copy)


def row_shards(array: ArrayLike, n_rows: int = SHARD_ROWS) -> list[ArrayLike]:
    """An array in order, `n_rows` rows a shard; what is a memory map of a file becomes `FileRows` of it.

    For the features of a store and whatever is aligned with them:

    fit_stream(zip(row_shards(pool.features), row_shards(pool.labels)), row_shards(target.features), engine=engine)
    """
    values: Any = array
    starts = range(0, len(values), n_rows)
    # A slice of a memory map still carries the offset of the whole, so it is not one we can name.
    if not (isinstance(values, np.memmap) and isinstance(values.base, mmap) and values.flags.c_contiguous):
        return [values[start : start + n_rows] for start in starts]
    path, row_bytes = Path(str(values.filename)), values.strides[0]
    return [
        FileRows(
            path,
            values.dtype.str,
            values.offset + start * row_bytes,
            (min(n_rows, len(values) - start), *values.shape[1:]),
        )
        for start in starts
    ]
