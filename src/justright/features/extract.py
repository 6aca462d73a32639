"""Images to a FeatureTable: test transform, no chance, order kept.

On a CPU each worker is a thread that decodes a batch and runs the network on it with one core, so cores never wait for
each other, as they do when torch splits every operation over all of them. For another device workers decode ahead and
the calling thread runs the network. Neither the number of workers nor a kill and a resume changes a byte: see
shard_job.py.
"""

from __future__ import annotations

import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int

from justright.audit.quarantine import MAX_BAD
from justright.data.columns import NAME, with_columns
from justright.data.image_set import ImageSet
from justright.errors import DataError
from justright.features.backbone import Backbone, Pooling
from justright.features.bad_rows import Reasons, quarantined, reason_at, refuse_bad_rows
from justright.features.cache import FeatureCache
from justright.features.feature_network import FeatureNetwork, Precision
from justright.features.shard_job import Extraction
from justright.features.store_header import Header, data_fingerprint
from justright.features.store_writer import StoreWriter, begin_store
from justright.features.table import FeatureTable
from justright.features.workers import one_core_a_thread
from justright.parallel import in_threads, n_cores
from justright.progress import Track, silent
from justright.types import Array

BATCH_SIZE = 16  # on a CPU larger ones leave its caches: efficientnet_lite0 took 1.3 times as long with 32


def extract(
    images: ImageSet,
    backbone: Backbone,
    out: Path,
    *,
    batch_size: int = BATCH_SIZE,
    n_workers: int | None = None,
    precision: Precision = "float32",
    pooling: Pooling = "class",
    max_bad: float = MAX_BAD,
    cache: FeatureCache | None = None,
    overwrite: bool = False,
    track: Track = silent,
) -> FeatureTable:
    """Compute the features of all images into the store `out`, or go on where an earlier call stopped.

    Parameters:
        batch_size: images that go through the network at once.
        n_workers: threads, by default one a core; 0 does all in the calling thread, with one core.
        precision: of the network; features are stored as float32, or as float16 where it is a half precision.
        pooling: which feature of an image, see `Backbone.forward`.
        max_bad: a larger share of images that cannot be decoded is refused; the others are listed in `quarantined`.
        cache: where features are looked up by content and kept.
        overwrite: whether to replace a store that holds something else.
    """
    if not len(images) or batch_size < 1:
        raise DataError(f"{len(images)} images in batches of {batch_size}", expected="at least one of both")
    n_workers = n_cores() if n_workers is None else n_workers
    with one_core_a_thread(), warnings.catch_warnings():
        # decode() changes the filters of the whole process for a moment; in threads that is safe only from silence
        warnings.simplefilter("ignore")
        network = FeatureNetwork(backbone, batch_size, precision, pooling)
        content_ids, unreadable = _content_ids(images, max(n_workers, 1), track)
        refuse_bad_rows(max_bad, images, unreadable)
        header = Header(**network.key(), data=data_fingerprint(content_ids, images.table))
        if begin_store(out, header, overwrite):
            return FeatureTable.open(out)
        section = None if cache is None else cache.section(network.key())
        with StoreWriter(out, header) as writer:
            work = Extraction(images, content_ids, unreadable, network, writer, section, max_bad)
            n_left = len(images) - work.next_row
            try:
                with closing(work.run(n_workers)) as steps:  # after Ctrl-C the workers end before the store closes
                    for _ in track(steps, n_left, f"extracting {', '.join(images.datasets)}"):
                        pass
            finally:
                work.feed_cache()
            writer.finish(store_index(images, content_ids, work.position, out), quarantined(images, work.bad))
    return FeatureTable.open(out, verify=False)


def _content_ids(images: ImageSet, n_threads: int, track: Track) -> tuple[list[str], Reasons]:
    """The content id of every image, "" with a reason where there is none.

    Computed even where the table has an id: a manifest may bring ids that name something else than content.
    """
    unreadable: dict[int, tuple[str, str]] = {}

    def content_id(row: int) -> str:
        try:
            return images.computed_id(row)
        except Exception as error:
            unreadable[row] = reason_at(error, images, row)
            return ""

    ids = in_threads(content_id, range(len(images)), n_threads)
    return list(track(ids, len(images), "hashing images")), unreadable


def store_index(images: ImageSet, content_ids: list[str], position: Int[Array, " images"], out: Path) -> pa.Table:
    """The table of the good images, ids filled in, sources named as seen from the store: `open_images` reads it."""
    table = images.table
    ids = pc.coalesce(table["id"], pa.array(content_ids, pa.string()))
    saved = {
        name: reader.saved_as(out.absolute()) or f"{name.partition(':')[0]}:" for name, reader in images.readers.items()
    }
    sources = pa.array([saved[name] for name in table["source"].to_pylist()], pa.string()).cast(NAME)
    table = with_columns(table, {"id": ids, "source": sources})
    return table.take(pa.array(np.flatnonzero(position >= 0))).combine_chunks()
