"""A shard of a view bank: one npy file of records, and after them a digest of every byte and of the file's own name.

Written by plain writes, so that a full disk is an error and not a signal; whole or not there; compared with its digest
before it is read for the first time. A shard under the name of another, or in another bank, does not fit its digest.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from justright.errors import DataError, JustrightError
from justright.files import replacing
from justright.hashing import SIZE
from justright.types import Array


@contextmanager
def writing(path: Path, layout: np.dtype[np.void], n_records: int) -> Iterator[Callable[[Array], None]]:
    """Write the shard of this name with the function that this yields, which appends records as `bank_records` packs.

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
            advice="make room and run again, finished shards are kept; or fewer views, precision int8, fresh views",
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
