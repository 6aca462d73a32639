"""Read every file of an ImageSet once: its content id, its look, its format, or why it is bad."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from justright.data.decoding import decode, format_against_suffix
from justright.data.duplicates import look_of
from justright.data.image_set import ImageSet, sent_in_parts
from justright.data.quarantine import reason_of
from justright.data.readers import Reader
from justright.utils.context import track
from justright.utils.hashing import BLOCK, hash_bytes
from justright.utils.parallel import Engine, threads

N_WORKERS = 8
"""Threads: reading waits for the disk, and Pillow releases the interpreter's lock while it decodes."""

PART_ROWS = 16
"""Images per task of a worker."""

FOUND = pa.schema(
    {
        "content": pa.string(),  # content id; null for a bad image
        "hash": pa.uint64(),  # perceptual hash; null for a bad or flat image, as are the shares of colors
        "red": pa.int32(),
        "green": pa.int32(),
        "blue": pa.int32(),
        "real_format": pa.string(),  # if the suffix is that of another one
        "kind": pa.string(),  # of a bad image, as is the reason
        "reason": pa.string(),
    }
)


def inspect_images(images: ImageSet, n_workers: int = N_WORKERS, engine: Engine | None = None) -> pa.Table:
    """Read every file once; returns dataset, source, path, class name and label of each image, and the columns FOUND.

    The result does not depend on the number of threads or the engine.
    """
    parts = (engine or threads(n_workers))(partial(_inspect_all, images.readers), sent_in_parts(images, PART_ROWS))
    with closing(parts):
        rows = iter(track(chain.from_iterable(parts), len(images), f"reading {', '.join(images.datasets)}"))
        batches = [pa.Table.from_pylist(batch, FOUND) for batch in iter(lambda: list(islice(rows, BLOCK)), [])]
    found = pa.concat_tables(batches) if batches else FOUND.empty_table()
    known = {name: images.table[name].cast(pa.string()) for name in ("dataset", "source", "path", "class_name")}
    return pa.table(known | {"label": images.table["label"]} | dict(zip(FOUND.names, found.columns, strict=True)))


def _inspect_all(readers: Mapping[str, Reader], places: pa.Table) -> list[dict[str, Any]]:
    return [_inspect(readers[at["source"]], at["path"]) for at in places.select(["source", "path"]).to_pylist()]


def _inspect(reader: Reader, path: str) -> dict[str, Any]:
    data = b""
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
        return {"kind": kind.value, "reason": reason}
    found = {"content": content_id, "real_format": format_against_suffix(data, path)}
    return found if look is None else found | dict(zip(("hash", "red", "green", "blue"), look, strict=True))
