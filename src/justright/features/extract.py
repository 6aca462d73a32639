"""Images to a FeatureTable: test transform, no randomness, order kept.

On a CPU each worker is a thread that decodes a batch and runs the network on it with one core, so cores never wait for
each other, as they do when torch splits every operation over all of them. For another device workers decode ahead and
the calling thread runs the network. An engine replaces the threads by processes, of this machine or of many.

The result does not depend on the number of workers, nor on a kill and a resume. The features of an image may depend, in
the last bits, on the shape of the batch. So every batch has the same shape (missing and bad images leave a black one in
their place) and is taken from one shard, a fixed range of the source. In a batch of the same shape neither the place
nor the neighbors of an image change its bits on the CPUs tried, so cached features equal computed ones; hardware that
breaks this changes rounding, never more.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import InitVar, dataclass
from functools import partial
from itertools import repeat, tee
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Float, Int
from torch import Tensor

from justright.data.columns import NAME, with_columns
from justright.data.image_set import ImageSet, sent, sent_in_parts
from justright.data.quarantine import MAX_BAD
from justright.data.readers import Reader
from justright.data.transforms import ImageRecipe
from justright.features.backbone import Backbone
from justright.features.bad_rows import Reasons, content_ids, quarantined, reason_at, refuse_bad_rows
from justright.features.cache import CacheSection, FeatureCache, digests
from justright.features.choices import BATCH_SIZE, Pooling, Precision
from justright.features.extracted_views import ExtractedViews
from justright.features.feature_network import FeatureNetwork
from justright.features.store import Header, StoreWriter, begin_store, data_fingerprint, expect_place
from justright.features.table import FeatureTable
from justright.features.views import pack
from justright.features.workers import on_one_core_each, one_core_a_thread, refuse_other_tools
from justright.utils.context import track
from justright.utils.errors import DataError, DegenerateError
from justright.utils.parallel import Engine, n_cores, threads
from justright.utils.remote import Place, place_of
from justright.utils.types import Array


class WorkedBatch(NamedTuple):
    """What came of a batch of images."""

    numbers: Array  # features, or pixels where the calling process computes
    bad: Reasons  # why images of it are bad, by their place in it
    records: Array | None  # their plain views as a bank stores them, where those are wanted and there


@dataclass(frozen=True)
class BatchWork:
    """Decodes a batch and, with a network, computes its features and with `layout` also records of a bank.

    Without one the calling process computes: a network on another device than a CPU stays there.
    """

    readers: Mapping[str, Reader]
    recipe: ImageRecipe
    batch_size: int
    network: FeatureNetwork | None
    tools: Mapping[str, str]
    layout: np.dtype[np.void] | None = None

    def __call__(self, places: pa.Table) -> WorkedBatch:
        """Decode a batch, and compute."""
        images, bad = ImageSet(places, self.readers), {}
        side = self.recipe.resolution
        batch = torch.zeros(self.batch_size if len(images) else 0, 3, side, side)
        for slot in range(len(images)):
            try:
                batch[slot] = self.recipe.preprocess(images.image(slot))
            except Exception as error:
                # decoders fail on damaged files in more ways than anyone has listed; the reason carries the error
                bad[slot] = reason_at(error, images, slot)
        if self.network is None:
            return WorkedBatch(batch.numpy(), bad, None)
        refuse_other_tools(self.network.tools(), self.tools)
        return computed(self.network, batch, self.layout, bad)


def computed(network: FeatureNetwork, batch: Tensor, layout: np.dtype[np.void] | None, bad: Reasons) -> WorkedBatch:
    """Features of a decoded batch, with `layout` also its plain views."""
    if layout is None or not len(batch):
        return WorkedBatch(network(batch), bad, None)
    features, stored = network.with_views(batch)
    return WorkedBatch(features, bad, pack(layout, network.backbone.stored_names, stored))


SHARD_BATCHES = 16  # a kill loses at most so many batches, and what the workers had begun
CACHE_ROWS = 2048

Rows: TypeAlias = Int[Array, " rows"]


@dataclass(frozen=True)
class _Part:
    """Features of some images of a shard."""

    rows: Rows
    features: Float[Array, " rows *axes"]


@dataclass(frozen=True)
class _Task:
    """One batch. The last one of a shard carries what the cache gave for the shard."""

    start: int
    rows: Rows
    cached: _Part | None = None


@dataclass(eq=False)
class Extraction:
    """The work on one store. `position` is the row of an image in the store, -1 for bad ones."""

    images: ImageSet
    content_ids: InitVar[list[str]]
    unreadable: InitVar[Reasons]  # images that are bad for certain, with the reason
    network: FeatureNetwork
    writer: StoreWriter
    section: CacheSection | None
    max_bad: float
    staged: ExtractedViews | None = None  # where plain views go that are computed on the way

    def __post_init__(self, content_ids: list[str], unreadable: Reasons) -> None:
        self.ids = digests(content_ids)
        _, first, same = np.unique(self.ids, return_index=True, return_inverse=True)
        self.first = first[same]  # images with equal content are computed once
        self.first[list(unreadable)] = list(unreadable)
        self.shard_rows = self.network.batch_size * SHARD_BATCHES
        shards = self.writer.shards
        self.bad = dict(unreadable) | {row: reason for shard in shards for row, reason in shard.bad.items()}
        self.next_row = min(len(shards) * self.shard_rows, len(self.images))
        self.position = np.full(len(self.images), -1)
        done = np.setdiff1d(np.arange(self.next_row), list(self.bad))
        self.position[done] = np.arange(len(done))
        self._fed = 0

    @property
    def n_left(self) -> int:
        """How many images are to be computed: those before the last whole shard, copies and cached ones are not."""
        rows = self._first_and_readable(self.next_row, len(self.images))
        return len(rows) if self.section is None else int((~self.section.holds(self.ids[rows])).sum())

    def _first_and_readable(self, start: int, stop: int) -> Rows:  # copies take the feature of the first
        rows = np.arange(start, stop)
        return rows[(self.first[rows] == rows) & np.isin(rows, list(self.bad), invert=True)]

    def run(self, n_workers: int, engine: Engine | None = None) -> Generator[None, None, None]:
        """Do what is left; one step for each image that is computed. Those of the last batch follow their shard."""
        parts: list[_Part] = []
        layout = None if self.staged is None else self.staged.layout
        network, readers = self.network, self.images.readers
        own = network if network.device.type == "cpu" else None
        work = BatchWork(readers, network.backbone.recipe, network.batch_size, own, network.tools(), layout)
        tasks, begun = tee(self._tasks())  # workers are told the places of images; the rest of a task stays here
        places = (sent(self.images, task.rows) for task in tasks)
        with closing(on_one_core_each(work, places, n_workers, engine)) as results:
            for batch, task in zip(results, begun, strict=True):
                if work.network is None:
                    batch = computed(network, torch.from_numpy(batch.numbers), layout, batch.bad)
                self.bad |= {int(task.rows[slot]): reason for slot, reason in batch.bad.items()}
                is_good = np.isin(np.arange(len(task.rows)), list(batch.bad), invert=True)
                parts.append(_Part(task.rows[is_good], batch.numbers[: len(task.rows)][is_good]))
                self._check_finite(parts[-1])
                if self.staged is not None and batch.records is not None:
                    self.staged.add(self.ids[parts[-1].rows], batch.records[: len(task.rows)][is_good])
                if task.cached is not None:
                    self._finish_shard(task.start, [*parts, task.cached])
                    parts = []
                yield from repeat(None, len(task.rows))

    def feed_cache(self, n_waiting: int = 1) -> None:
        """Give finished features to the cache once `n_waiting` images wait for it."""
        while self.section is not None and self.next_row - self._fed >= n_waiting:
            rows = np.arange(self._fed, min(self._fed + CACHE_ROWS, self.next_row))
            rows = rows[(self.position[rows] >= 0) & (self.first[rows] == rows) & ~self.section.holds(self.ids[rows])]
            self.section.add(self.ids[rows], self.writer.read(self.position[rows]))
            self._fed = min(self._fed + CACHE_ROWS, self.next_row)

    def _tasks(self) -> Iterator[_Task]:
        for start in range(self.next_row, len(self.images), self.shard_rows):
            rows = self._first_and_readable(start, min(start + self.shard_rows, len(self.images)))
            cached = _Part(rows[:0], np.empty((0, *self.network.shape), self.network.dtype))
            if self.section is not None:
                is_found, features = self.section.read(self.ids[rows])
                if features is not None:
                    cached, rows = _Part(rows[is_found], features), rows[~is_found]
            size = self.network.batch_size
            batches = [rows[i : i + size] for i in range(0, len(rows), size)] or [rows]
            yield from (_Task(start, batch) for batch in batches[:-1])
            yield _Task(start, batches[-1], cached)

    def _finish_shard(self, start: int, parts: list[_Part]) -> None:
        stop = min(start + self.shard_rows, len(self.images))
        block = np.zeros((stop - start, *self.network.shape), self.network.dtype)
        for part in parts:
            block[part.rows - start] = part.features
        copies = start + np.flatnonzero(self.first[start:stop] != np.arange(start, stop))
        self.bad |= {row: self.bad[first] for row in copies.tolist() if (first := int(self.first[row])) in self.bad}
        copies = copies[np.isin(copies, list(self.bad), invert=True)]
        here = self.first[copies] >= start
        block[copies[here] - start] = block[self.first[copies[here]] - start]
        if not here.all():
            block[copies[~here] - start] = self.writer.read(self.position[self.first[copies[~here]]])
        if self.staged is not None:
            self.staged.flush()  # before the features: what has features is not computed again
        mine = {row: self.bad[row] for row in range(start, stop) if row in self.bad}
        good = np.setdiff1d(np.arange(start, stop), list(mine))
        self.position[good] = self.writer.n_rows + np.arange(len(good))
        self.writer.add(block[good - start], mine)
        self.next_row = stop
        self.feed_cache(CACHE_ROWS)
        refuse_bad_rows(self.max_bad, self.images, self.bad)

    def _check_finite(self, part: _Part) -> None:
        is_wrong = ~np.isfinite(part.features).all(axis=tuple(range(1, part.features.ndim)))
        if is_wrong.any():
            path = self.images.table["path"][int(part.rows[is_wrong][0])].as_py()
            raise DegenerateError(
                f"{path}: the feature is not finite in {self.network.precision}",
                advice="--precision float32; if it is that already, the checkpoint is broken",
            )


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

    `out` is a folder, or an address of fsspec such as s3://bucket/birds.features; see store.py.

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
    from justright.features.vectors import VectorNetwork, store_vectors  # it imports this module

    if isinstance(backbone, VectorNetwork):
        return store_vectors(images, backbone, out)
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
