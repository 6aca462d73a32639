"""References to rows of a file: cheap to send to a worker, which reads them itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from mmap import mmap
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from justright.utils.errors import DataError
from justright.utils.remote import Place, RemotePath
from justright.utils.types import Array

SHARD_ROWS = 32_768  # 50 MB in half precision at 768 dimensions, against 6 MB that a thousand class sums take


@runtime_checkable
class ArrayLike(Protocol):
    """Anything that numpy can read as an array: a numpy array, a memory map, a torch tensor."""

    def __array__(self, *args: Any, **kwargs: Any) -> Array: ...


@dataclass(frozen=True)
class FileRows:
    """Consecutive rows of an array in a file. Numpy reads it as an array, each time from the file.

    A file of this machine is mapped into memory; of one elsewhere the bytes of these rows are fetched.
    """

    path: Place
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        rows: Array
        if isinstance(self.path, RemotePath):
            n_bytes = math.prod(self.shape) * self.dtype.itemsize
            data = self.path.read_bytes(self.offset, self.offset + n_bytes)
            if len(data) != n_bytes:
                raise DataError(f"{self.path} ends early: {len(data):,} bytes", expected=f"{n_bytes:,}")
            rows = np.frombuffer(data, self.dtype).reshape(self.shape)
        else:
            rows = np.memmap(str(self.path), self.dtype, "r", self.offset, self.shape)
        return np.array(rows, dtype=dtype or rows.dtype, copy=copy)

    def __getitem__(self, key: Any) -> Array:
        """Rows by index, slice or mask, as of an array; shards without any of them are not read."""
        distinct, inverse = np.unique(np.arange(len(self))[key], return_inverse=True)
        parts = [np.empty((0, *self.shape[1:]), self.dtype)]
        for start in range(0, len(self), SHARD_ROWS):
            rows = distinct[(distinct >= start) & (distinct < start + SHARD_ROWS)]
            if len(rows):
                span = self.part(int(rows[0]), int(rows[-1]) + 1)
                parts.append(np.asarray(span)[rows - rows[0]])
        return np.concatenate(parts)[inverse]

    def part(self, start: int, stop: int) -> FileRows:
        """The rows from `start` on, up to `stop`."""
        stop = min(stop, len(self))
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        return replace(self, offset=self.offset + start * row_bytes, shape=(stop - start, *self.shape[1:]))


def row_shards(array: ArrayLike, n_rows: int = SHARD_ROWS) -> list[ArrayLike]:
    """Cut an array into shards of `n_rows` rows; a memory map becomes `FileRows` of its file.

    Example:
        labeled = zip(row_shards(pool.features), row_shards(pool.labels))
        selector.fit_stream(labeled, row_shards(target.features), engine=engine)
    """
    values: Any = array
    starts = range(0, len(values), n_rows)
    # a slice of a memory map has the offset of the whole map, so its place in the file is unknown
    if isinstance(values, np.memmap) and isinstance(values.base, mmap) and values.flags.c_contiguous:
        values = FileRows(Path(str(values.filename)), values.dtype, values.offset, values.shape)
    if isinstance(values, FileRows):
        return [values.part(start, start + n_rows) for start in starts]
    return [values[start : start + n_rows] for start in starts]
