"""Images to a FeatureTable: test transform, no chance, order kept.

On a CPU each worker is a thread that decodes a batch and runs the network on it with one core, so cores never wait for
each other, as they do when torch splits every operation over all of them. For another device workers decode ahead and
the calling thread runs the network. An engine puts processes, of this machine or of many, in the place of the threads.
Neither the number of workers nor a kill and a resume changes a byte: see shard_job.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int

from justright.data.columns import NAME, with_columns
from justright.data.image_set import ImageSet, sent_in_parts
from justright.data.quarantine import MAX_BAD
from justright.data.readers import Reader
from justright.features.backbone import Backbone
from justright.features.bad_rows import Reasons, content_ids, quarantined, refuse_bad_rows
from justright.features.cache import FeatureCache
from justright.features.choices import BATCH_SIZE, Pooling, Precision
from justright.features.extracted_views import ExtractedViews
from justright.features.feature_network import FeatureNetwork
from justright.features.shard_job import Extraction
from justright.features.store_header import Header, data_fingerprint
from justright.features.store_writer import StoreWriter, begin_store, expect_place
from justright.features.table import FeatureTable
from justright.features.workers import one_core_a_thread
from justright.utils.context import track
from justright.utils.errors import DataError
from justright.utils.parallel import Engine, n_cores, threads
from justright.utils.remote import Place, place_of
from justright.utils.types import Array

HASHED_ROWS = 16


def extract(
    images: ImageSet,
    backbone: Backbone,
    out: Place | str,
    *,
    batch_size: int = BATCH_SIZE,
    n_workers: int | None = None,
    precision: Precision = "float32",
    pooling: Pooling = "class",
    max_bad: float = MAX_BAD,
    cache: FeatureCache | None = None,
    overwrite: bool = False,
    engine: Engine | None = None,
    banks: Path | None = None,
) -> FeatureTable:
    """Compute the features of all images into the store `out`, or go on where an earlier call stopped.

    `out` is a folder, or an address of fsspec such as s3://bucket/birds.features; see store_writer.py.

    Parameters:
        batch_size: images that go through the network at once.
        n_workers: threads, by default one a core; 0 does all in the calling thread, with one core.
        precision: of the network; features are stored as float32, or as float16 where it is a half precision.
        pooling: which feature of an image, see `Backbone.forward`.
        max_bad: a larger share of images that cannot be decoded is refused; the others are listed in `quarantined`.
        cache: where features are looked up by content and kept.
        overwrite: whether to replace a store that holds something else.
        engine: where the work is done instead of in `n_workers` threads; it changes no byte.
        banks: the root of view banks; plain views of what is computed are left there for them, see extracted_views.py.
    """
    if not len(images) or batch_size < 1:
        raise DataError(f"{len(images)} images in batches of {batch_size}", expected="at least one of both")
    n_workers = n_cores() if n_workers is None else n_workers
    with one_core_a_thread():
        network, place = FeatureNetwork(backbone, batch_size, precision, pooling), place_of(out)
        asked = network.key()
        expect_place(place, Header(**asked), overwrite, parts=tuple(asked))  # before all images are read
        ids, unreadable = _content_ids(images, engine or threads(max(n_workers, 1)))
        refuse_bad_rows(max_bad, images, unreadable)
        header = Header(**asked, data=data_fingerprint(ids, images.table))
        if begin_store(place, header, overwrite):
            return FeatureTable.open(place)
        section = None if cache is None else cache.section(asked)
        gives_views = network.gives_views and batch_size == BATCH_SIZE
        extracted_views = ExtractedViews(backbone, banks) if gives_views and banks is not None else None
        with StoreWriter(place, header) as writer:
            work = Extraction(images, ids, unreadable, network, writer, section, max_bad, extracted_views)
            try:
                with closing(work.run(n_workers, engine)) as steps:  # after Ctrl-C workers end before the store closes
                    for _ in track(steps, work.n_left, f"extracting {', '.join(images.datasets)}"):
                        pass
            finally:
                work.feed_cache()
            writer.finish(store_index(images, ids, work.position, place), quarantined(images, work.bad))
    return FeatureTable.open(place, verify=False)


def _content_ids(images: ImageSet, engine: Engine) -> tuple[list[str], Reasons]:
    """The content id of every image, "" with a reason where there is none."""
    unreadable: dict[int, tuple[str, str]] = {}

    def each() -> Iterator[str]:
        start = 0
        with closing(engine(partial(content_ids, images.readers), sent_in_parts(images, HASHED_ROWS))) as parts:
            for ids, reasons in parts:
                unreadable.update((start + slot, reason) for slot, reason in reasons.items())
                start += len(ids)
                yield from ids

    return list(track(each(), len(images), "hashing images")), unreadable


def store_index(images: ImageSet, content_ids: list[str], position: Int[Array, " images"], out: Place) -> pa.Table:
    """The table of the good images, ids filled in, sources named as seen from the store: `open_images` reads it."""
    table = images.table
    ids = pc.coalesce(table["id"], pa.array(content_ids, pa.string()))
    saved = {name: _saved_as(reader, out) or f"{name.partition(':')[0]}:" for name, reader in images.readers.items()}
    sources = pa.array([saved[name] for name in table["source"].to_pylist()], pa.string()).cast(NAME)
    table = with_columns(table, {"id": ids, "source": sources})
    return table.take(pa.array(np.flatnonzero(position >= 0))).combine_chunks()


def _saved_as(reader: Reader, out: Place) -> str | None:
    """A source as seen from the store; from elsewhere it is seen as from here."""
    if isinstance(out, Path):
        return reader.saved_as(out.absolute())
    return reader.saved_as(Path("/")) and reader.source
