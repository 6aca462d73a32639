"""One stored view as one fixed-size record, so that a shard is a plain array without pickle.

Large tensors are kept in float32, float16, or int8 with one scale a token: x = scale * q, scale = max|x| / 127.
What is small (x_0) stays float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch

from justright.errors import DataError
from justright.features.cuts import Stored
from justright.types import Array

BankPrecision = Literal["float32", "float16", "int8"]
BANK_PRECISIONS: tuple[str, ...] = get_args(BankPrecision)

SCALE = "scale"


def large_ones(names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, str]:
    """The large tensors, and the name of the scales of each: the first, and any other that has several rows."""
    places = [place for place, shape in enumerate(shapes) if not place or len(shape) > 1]
    return {names[place]: f"{SCALE} of {names[place]}" if place else SCALE for place in places}


def record_type(names: Sequence[str], shapes: Sequence[tuple[int, ...]], precision: BankPrecision) -> np.dtype[np.void]:
    """The layout of one record. Four-byte fields first and padding at the end keep every field aligned."""
    large, shape_of = large_ones(names, shapes), dict(zip(names, shapes, strict=True))
    fields: list[tuple[str, str, tuple[int, ...]]] = []
    fields += [(name, "<f4", shape_of[name]) for name in names if name not in large]
    if precision == "int8":
        fields += [(scale, "<f4", shape_of[name][:-1]) for name, scale in large.items()]
    fields += [(name, np.dtype(precision).newbyteorder("<").str, shape_of[name]) for name in large]
    return np.dtype(fields, align=True)


def packed(layout: np.dtype[np.void], names: Sequence[str], stored: Stored) -> Array:
    """A batch of views as records."""
    records = np.zeros(len(stored[0]), layout)  # padding is zero too: equal views, equal bytes
    large = large_ones(names, [layout[name].shape for name in names])
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


def read(records: Sequence[np.void], names: Sequence[str]) -> Stored:
    """A batch from one record each, as float32."""
    layout = records[0].dtype
    large = large_ones(names, [layout[name].shape for name in names])
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
