"""Shards of a view bank: records of one size, one a stored view, in a plain npy file that ends with a digest.

The first tensor, which is large, is kept in float32 or float16; the others stay float32.

The digest is of every byte and of the file's own name: a shard under the name of another, or in another bank, does not
fit it. Files are written by plain writes, so that a full disk is an error and not a signal. They are whole or not
there, and compared with their digest before they are read for the first time.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch

from justright.features.cuts import Stored
from justright.utils.errors import DataError, JustrightError
from justright.utils.files import replacing
from justright.utils.hashing import SIZE
from justright.utils.types import Array

BankPrecision = Literal["float32", "float16"]
BANK_PRECISIONS: tuple[str, ...] = get_args(BankPrecision)


def record_type(names: Sequence[str], shapes: Sequence[tuple[int, ...]], precision: BankPrecision) -> np.dtype[np.void]:
    """The layout of one record: float32 fields first, then the large tensor, with padding that keeps fields aligned."""
    large, *small = zip(names, shapes, strict=True)
    fields = [(name, "<f4", shape) for name, shape in small]
    return np.dtype([*fields, (large[0], np.dtype(precision).newbyteorder("<").str, large[1])], align=True)


def packed(layout: np.dtype[np.void], names: Sequence[str], stored: Stored) -> Array:
    """A batch of views as records."""
    records = np.zeros(len(stored[0]), layout)  # padding is zero too: equal views, equal bytes
    for name, part in zip(names, stored, strict=True):
        with np.errstate(over="ignore"):  # checked in the next line
            records[name] = part.float().cpu().numpy()
        if layout[name].base == np.float16 and not np.isfinite(records[name]).all():
            raise DataError("activations too large for float16", expected="at most 65,504", advice="precision float32")
    return records


def unpacked(records: Sequence[np.void], names: Sequence[str]) -> Stored:
    """A batch from one record per view, as float32."""
    layout = records[0].dtype
    parts = []
    for name in names:
        # Gathered by plain copies, then converted at once: one parallel region. A conversion per record would make
        # threads wait for each other at every view.
        gathered = np.empty((len(records), *layout[name].shape), layout[name].base)
        for place, record in zip(gathered, records, strict=True):
            place[...] = record[name]
        parts.append(torch.from_numpy(gathered).float())
    return tuple(parts)


@contextmanager
def writing(path: Path, layout: np.dtype[np.void], n_records: int) -> Iterator[Callable[[Array], None]]:
    """Write the shard of this name with the function that this yields, which appends records.

    The shard is there once all is written. What cannot be written is a JustrightError.
    """
    digest = _digest(path)
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:

            def write(data: bytes) -> None:
                digest.update(data)
                file.write(data)

            write(_beginning(layout, n_records))
            yield lambda records: write(records.tobytes())
            file.write(digest.digest())
            file.flush()
    except OSError as error:
        raise JustrightError(
            f"{path} cannot be written: {error.strerror or error}",
            expected="room for the view bank",
            advice="make room and run again, finished shards are kept; or fewer views, or fresh views",
        ) from error


def is_whole(path: Path) -> bool:
    """Whether a shard has the bytes that its digest says; reads it once."""
    data, digest = memoryview(path.read_bytes()), _digest(path)
    digest.update(data[:-SIZE])
    return data[-SIZE:] == digest.digest()


def open_shard(path: Path, layout: np.dtype[np.void], n_records: int) -> Array:
    """Map a finished shard for reading."""
    beginning = _beginning(layout, n_records)
    with path.open("rb") as file:
        fits = file.read(len(beginning)) == beginning
    if not fits or path.stat().st_size != len(beginning) + n_records * layout.itemsize + SIZE:
        raise DataError(
            f"{path} holds records of another layout",
            expected=f"{n_records} of {layout.itemsize:,} bytes",
            advice=f"delete {path.parent}; it is built anew",
        )
    return np.memmap(path, layout, "r", len(beginning), (n_records,))


def _digest(path: Path) -> hashlib.blake2b:
    """Begun with the name of the bank and of the file: only there are these bytes right."""
    return hashlib.blake2b(f"{path.parent.name}/{path.name}\n".encode(), digest_size=SIZE)


def _beginning(layout: np.dtype[np.void], n_records: int) -> bytes:
    """What an npy file of these records begins with."""
    buffer = io.BytesIO()
    about = {"descr": np.lib.format.dtype_to_descr(layout), "fortran_order": False, "shape": (n_records,)}
    np.lib.format.write_array_header_2_0(buffer, about)
    return buffer.getvalue()
