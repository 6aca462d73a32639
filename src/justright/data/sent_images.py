"""Images as they are sent to a worker: a few rows of the table. Their readers travel once, with the work."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from jaxtyping import Int

from justright.data.image_set import ImageSet
from justright.utils.types import Array

SENT = ("id", "source", "path", "dataset")


def sent(images: ImageSet, rows: range | Int[Array, " rows"]) -> pa.Table:
    """What a worker has to know of images, whose rows ascend; `ImageSet(table, readers)` makes a set of it."""
    if not len(rows):
        return images.table.select(SENT).slice(0, 0)
    first, last = int(rows[0]), int(rows[-1])
    near = images.table.select(SENT).slice(first, last - first + 1)  # taking from all would go through all
    return near.take(pa.array([int(row) - first for row in rows])).combine_chunks()


def sent_in_parts(images: ImageSet, n_rows: int) -> Iterator[pa.Table]:
    """All images, so many at a time."""
    for start in range(0, len(images), n_rows):
        yield sent(images, range(start, min(start + n_rows, len(images))))
