"""Arrays in checked files: an npy file, followed by a digest of every byte and of the name of file and folder.

Cached features and the shards of view banks are kept in this format. A file is complete or absent, and a file under the
name of another, or in another folder, does not match its digest. Plain writes are used, so that a full disk is an error
and not a signal.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from justright.utils.files import replacing
from justright.utils.hashing import SIZE
from justright.utils.types import Array

AnyArray = Shaped[Array, "..."]


@contextmanager
def writing_array(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Iterator[Callable[[AnyArray], None]]:
    """Write an array with the function that this yields, which appends rows. The file appears when all is written."""
    digest = _digest(path)
    header = io.BytesIO()
    about = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(header, about)
    with replacing(path) as temporary, temporary.open("wb") as file:

        def write(data: bytes) -> None:
            digest.update(data)
            file.write(data)

        write(header.getvalue())
        yield lambda rows: write(rows.tobytes())
        file.write(digest.digest())
        file.flush()


def write_array(path: Path, array: AnyArray) -> None:
    """Write an array at once."""
    with writing_array(path, array.dtype, array.shape) as write:
        write(array)


def is_intact(path: Path) -> bool:
    """Whether a file matches its digest; reads it once."""
    data, digest = memoryview(path.read_bytes()), _digest(path)
    digest.update(data[:-SIZE])
    return data[-SIZE:] == digest.digest()


def open_array(path: Path) -> AnyArray:
    """Map a file into memory for reading; ValueError if it is not an array."""
    array: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _digest(path: Path) -> hashlib.blake2b:
    return hashlib.blake2b(f"{path.parent.name}/{path.name}\n".encode(), digest_size=SIZE)
