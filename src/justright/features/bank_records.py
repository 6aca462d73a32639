"""One stored view as one fixed-size record, so that a shard is a plain array without pickle.

The large tensor is kept in float32, float16, or int8 with one scale a token: x = scale * q, scale = max|x| / 127.
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


def record_type(names: Sequence[str], shapes: Sequence[tuple[int, ...]], precision: BankPrecision) -> np.dtype[np.void]:
    """The layout of one record. Four-byte fields first and padding at the end keep every field aligned."""
    large, *small = zip(names, shapes, strict=True)
    fields: list[tuple[str, str, tuple[int, ...]]] = [(name, "<f4", shape) for name, shape in small]
    if precision == "int8":
        fields.append((SCALE, "<f4", large[1][:-1]))
    fields.append((large[0], np.dtype(precision).newbyteorder("<").str, large[1]))
    return np.dtype(fields, align=True)


def packed(layout: np.dtype[np.void], names: Sequence[str], stored: Stored) -> Array:
    """A batch of views as records."""
    records = np.zeros(len(stored[0]), layout)  # padding is zero too: equal views, equal bytes
    for name, part in zip(names[1:], stored[1:], strict=True):
        records[name] = part.float().cpu().numpy()
    large = stored[0].float().cpu()
    if SCALE in (layout.names or ()):
        scale = large.abs().amax(dim=-1) / 127
        records[SCALE] = scale.numpy()
        scale = scale.masked_fill(scale == 0, 1.0)  # a token of zeros
        large = (large / scale[..., None]).round_()
    with np.errstate(over="ignore"):  # judged in the next line
        records[names[0]] = large.numpy()
    if layout[names[0]].base == np.float16 and not np.isfinite(records[names[0]]).all():
        raise DataError("activations too large for float16", expected="at most 65,504", advice="precision float32")
    return records


def read(records: Sequence[np.void], names: Sequence[str]) -> Stored:
    """A batch from one record each, as float32."""
    layout = records[0].dtype
    parts = []
    for name in names:
        # gathered by plain copies, precision changed at once: one parallel region, where a copy a record would have
        # threads wait for each other at every view
        gathered = np.empty((len(records), *layout[name].shape), layout[name].base)
        for place, record in zip(gathered, records, strict=True):
            place[...] = record[name]
        parts.append(torch.from_numpy(gathered).float())
    if SCALE in (layout.names or ()):
        scale = torch.from_numpy(np.stack([record[SCALE] for record in records]))
        parts[0].mul_(scale[..., None])
    return tuple(parts)
