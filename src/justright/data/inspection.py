"""Read every file of an ImageSet once: its content id, its look, its format, or why it is bad."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int, UInt64

from justright.data.decoding import decode, format_against_suffix
from justright.data.duplicates import look_of
from justright.data.image_set import ImageSet, sent_in_parts
from justright.data.quarantine import Quarantined, reason_of
from justright.data.readers import Reader
from justright.utils.context import track
from justright.utils.hashing import hash_bytes
from justright.utils.parallel import Engine, threads
from justright.utils.types import Array

N_WORKERS = 8
"""Threads: reading waits for the disk, and Pillow releases the interpreter's lock while it decodes."""

PART_ROWS = 16
"""Images per task of a worker."""


@dataclass(frozen=True)
class Inspection:
    """The result of one pass, aligned with the rows of the set. Bad images have the content id ""."""

    content_ids: list[str]
    has_look: Bool[Array, " images"]
    hashes: UInt64[Array, " images"]
    colors: Int[Array, "images 3"]
    bad: dict[int, Quarantined]
    misnamed: dict[int, str]

    @property
    def is_good(self) -> Bool[Array, " images"]:
        """Whether an image can be used."""
        good = np.ones(len(self.content_ids), bool)
        good[list(self.bad)] = False
        return good


@dataclass(frozen=True, slots=True)
class _GoodImage:
    content_id: str
    look: tuple[int, tuple[int, int, int]] | None
    real_format: str | None


def inspect_images(images: ImageSet, n_workers: int = N_WORKERS, engine: Engine | None = None) -> Inspection:
    """Read every file once; the result does not depend on the number of threads or the engine."""
    n = len(images)
    content_ids, has_look = [""] * n, np.zeros(n, bool)
    hashes, colors = np.zeros(n, np.uint64), np.zeros((n, 3), np.int32)
    bad: dict[int, Quarantined] = {}
    misnamed: dict[int, str] = {}
    work = partial(_inspect_all, images.readers)
    parts = (engine or threads(n_workers))(work, sent_in_parts(images, PART_ROWS))
    with closing(parts):
        for row, outcome in enumerate(track(chain.from_iterable(parts), n, f"reading {', '.join(images.datasets)}")):
            if isinstance(outcome, Quarantined):
                bad[row] = outcome
                continue
            content_ids[row] = outcome.content_id
            if outcome.look is not None:
                has_look[row], (hashes[row], colors[row]) = True, outcome.look
            if outcome.real_format is not None:
                misnamed[row] = outcome.real_format
    return Inspection(content_ids, has_look, hashes, colors, bad, misnamed)


def _inspect_all(readers: Mapping[str, Reader], places: pa.Table) -> list[_GoodImage | Quarantined]:
    return [_inspect(readers[at["source"]], at) for at in places.select(["dataset", "source", "path"]).to_pylist()]


def _inspect(reader: Reader, at: Mapping[str, str]) -> _GoodImage | Quarantined:
    path, data = at["path"], b""
    try:
        # if id and image both come from the bytes of a file, it is read once
        if type(reader).image is Reader.image and type(reader).content_id is Reader.content_id:
            data = reader.encoded(path)
            content_id, image = hash_bytes(data), decode(data, path)
        else:
            content_id, image = reader.content_id(path), reader.image(path)
        look = look_of(image)
    except Exception as error:
        # decoders raise many kinds of errors for damaged files; the reason carries each
        kind, reason = reason_of(error, path, data)
        return Quarantined(**at, kind=kind, reason=reason)
    return _GoodImage(content_id, look, format_against_suffix(data, path))
