"""Shards of a view bank: records of one size, one a stored view, in a plain npy file that ends with a digest.

Large tensors are kept in float32, float16, or int8 with one scale a token: x = scale * q, scale = max|x| / 127.
What is small (x_0) stays float32.

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

BankPrecision = Literal["float32", "float16", "int8"]
BANK_PRECISIONS: tuple[str, ...] = get_args(BankPrecision)

SCALE = "scale"


def large_tensors(names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, str]:
    """The large tensors, and the name of the scales of each: the first, and any other that has several rows."""
    places = [place for place, shape in enumerate(shapes) if not place or len(shape) > 1]
    return {names[place]: f"{SCALE} of {names[place]}" if place else SCALE for place in places}


def record_type(names: Sequence[str], shapes: Sequence[tuple[int, ...]], precision: BankPrecision) -> np.dtype[np.void]:
    """The layout of one record. Four-byte fields first and padding at the end keep every field aligned."""
    large, shape_of = large_tensors(names, shapes), dict(zip(names, shapes, strict=True))
    fields: list[tuple[str, str, tuple[int, ...]]] = []
    fields += [(name, "<f4", shape_of[name]) for name in names if name not in large]
    if precision == "int8":
        fields += [(scale, "<f4", shape_of[name][:-1]) for name, scale in large.items()]
    fields += [(name, np.dtype(precision).newbyteorder("<").str, shape_of[name]) for name in large]
    return np.dtype(fields, align=True)


def packed(layout: np.dtype[np.void], names: Sequence[str], stored: Stored) -> Array:
    """A batch of views as records."""
    records = np.zeros(len(stored[0]), layout)  # padding is zero too: equal views, equal bytes
    large = large_tensors(names, [layout[name].shape for name in names])
    for name, part in zip(names, stored, strict=True):
        numbers = part.float().cpu()
        if (scale_name := large.get(name)) in (layout.names or ()):
            scale = numbers.abs().amax(dim=-1) / 127
            records[scale_name] = scale.numpy()
            scale = scale.masked_fill(scale == 0, 1.0)  # a token of zeros
            numbers = (numbers / scale[..., None]).round_()
        with np.errstate(over="ignore"):  # judged in the next line
            records[name] = numbers.numpy()
        if layout[name].base == np.float16 and not np.isfinite(records[name]).all():
            raise DataError("activations too large for float16", expected="at most 65,504", advice="precision float32")
    return records


def unpacked(records: Sequence[np.void], names: Sequence[str]) -> Stored:
    """A batch from one record each, as float32."""
    layout = records[0].dtype
    large = large_tensors(names, [layout[name].shape for name in names])
    parts = []
    for name in names:
        # gathered by plain copies, precision changed at once: one parallel region, where a copy a record would have
        # threads wait for each other at every view
        gathered = np.empty((len(records), *layout[name].shape), layout[name].base)
        for place, record in zip(gathered, records, strict=True):
            place[...] = record[name]
        parts.append(torch.from_numpy(gathered).float())
        if (scale_name := large.get(name)) in (layout.names or ()):
            scale = torch.from_numpy(np.stack([record[scale_name] for record in records]))
            parts[-1].mul_(scale[..., None])
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
