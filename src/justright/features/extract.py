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
from jaxtyping import Bool, Float, Int
from torch import Tensor

from justright.data.columns import NAME, with_columns
from justright.data.image_set import ImageSet, sent, sent_in_parts
from justright.data.quarantine import MAX_BAD
from justright.data.readers import Reader
from justright.data.transforms import ImageRecipe, Plain
from justright.features.backbone import Backbone
from justright.features.bad_rows import Reasons, content_ids, quarantined, reason_at, reason_now, refuse_bad_rows
from justright.features.cache import (
    BLOCK,
    FeatureCache,
    KeptBanks,
    Section,
    digests,
    is_intact,
    open_block,
    write_block,
)
from justright.features.choices import BATCH_SIZE, Pooling, Precision
from justright.features.feature_network import FeatureNetwork
from justright.features.store import (
    PARTS,
    Header,
    begin_store,
    data_fingerprint,
    expect_place,
    locked_store,
    write_store,
)
from justright.features.table import FeatureTable
from justright.features.views import pack, record_type, view_key
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


PART_BATCHES = 16  # a kill loses at most so many batches, and what the workers had begun

Rows: TypeAlias = Int[Array, " rows"]


@dataclass(frozen=True)
class _Part:
    """Some neighboring images of an extraction: their rows, and their features, NaN where there is none yet."""

    path: Path
    rows: Rows
    features: Float[Array, " rows *axes"]


@dataclass(eq=False)
class Extraction:
    """The computation of one store. Finished parts are kept in `folder`, so that a killed extraction resumes.

    Of images with equal content the first is computed. A part has one row for each such image, NaN for a bad one.
    """

    images: ImageSet
    content_ids: InitVar[list[str]]
    unreadable: InitVar[Reasons]  # images that are bad for certain, with the reason
    network: FeatureNetwork
    folder: Path
    section: Section | None  # of the cache
    max_bad: float
    views: Section | None = None  # where plain views are kept that are computed on the way

    def __post_init__(self, content_ids: list[str], unreadable: Reasons) -> None:
        self.ids = digests(content_ids)
        self.bad: dict[int, tuple[str, str]] = dict(unreadable)
        _, first, same = np.unique(self.ids, return_index=True, return_inverse=True)
        self.first = first[same]
        self.first[list(unreadable)] = list(unreadable)
        is_distinct = self.first == np.arange(len(self.images))
        is_distinct[list(unreadable)] = False
        self.distinct = np.flatnonzero(is_distinct)
        self.part_rows = self.network.batch_size * PART_BATCHES
        starts = range(0, len(self.distinct), self.part_rows)
        self.parts = {
            self.folder / f"{number:06d}{BLOCK}": self.distinct[start : start + self.part_rows]
            for number, start in enumerate(starts)
        }
        self.missing = [path for path, rows in self.parts.items() if not self._is_done(path, rows)]

    def _is_done(self, path: Path, rows: Rows) -> bool:
        """Whether a part was finished before. Bad images of it are read again for the reason."""
        if not path.exists() or not is_intact(path):
            return False
        ids, features = open_block(path)
        bad = {int(row): reason_now(self.images, int(row)) for row in rows[is_blank(features)]}
        if not np.array_equal(ids, self.ids[rows]) or None in bad.values():
            return False
        self.bad |= {row: reason for row, reason in bad.items() if reason is not None}
        return True

    @property
    def n_left(self) -> int:
        """How many images are to be computed: without finished parts, copies and cached ones."""
        rows = np.concatenate([np.zeros(0, np.int64), *(self.parts[path] for path in self.missing)])
        return len(rows) if self.section is None else int((~self.section.holds(self.ids[rows])).sum())

    def run(self, n_workers: int, engine: Engine | None = None) -> Generator[None, None, None]:
        """Compute the missing parts; one step for each image. Those of the last batch follow their part."""
        network, readers = self.network, self.images.readers
        names, shapes = network.backbone.stored_names, network.backbone.stored_shapes
        layout = None if self.views is None else record_type(names, shapes, "float32")
        own = network if network.device.type == "cpu" else None
        work = BatchWork(readers, network.backbone.recipe, network.batch_size, own, network.tools(), layout)
        tasks, begun = tee(self._tasks())  # workers are told the places of images; the rest of a task stays here
        places = (sent(self.images, part.rows[slots]) for part, slots, _ in tasks)
        with closing(on_one_core_each(work, places, n_workers, engine)) as results:
            for batch, (part, slots, is_last) in zip(results, begun, strict=True):
                if work.network is None:
                    batch = computed(network, torch.from_numpy(batch.numbers), layout, batch.bad)
                rows, is_good = part.rows[slots], np.isin(np.arange(len(slots)), list(batch.bad), invert=True)
                self.bad |= {int(rows[place]): reason for place, reason in batch.bad.items()}
                features = batch.numbers[: len(slots)][is_good]
                self._check_finite(rows[is_good], features)
                part.features[slots[is_good]] = features
                if self.section is not None:
                    self.section.add(self.ids[rows[is_good]], features)
                if self.views is not None and batch.records is not None:
                    self.views.add(self.ids[rows[is_good]], batch.records[: len(slots)][is_good])
                if is_last:
                    write_block(part.path, self.ids[part.rows], part.features)
                    refuse_bad_rows(self.max_bad, self.images, self.all_bad())
                yield from repeat(None, len(slots))

    def _tasks(self) -> Iterator[tuple[_Part, Rows, bool]]:
        """Batches: a part, places in it, and whether it is the last batch of the part."""
        for path in self.missing:
            rows, size = self.parts[path], self.network.batch_size
            part = _Part(path, rows, np.full((len(rows), *self.network.shape), np.nan, self.network.dtype))
            slots = np.arange(len(rows))
            if self.section is not None:
                is_found, features = self.section.read(self.ids[rows])
                if features is not None:
                    part.features[is_found], slots = features, slots[~is_found]
            batches = [slots[start : start + size] for start in range(0, len(slots), size)] or [slots]
            for number, batch in enumerate(batches, start=1):
                yield part, batch, number == len(batches)

    def flush(self) -> None:
        """Write what waits for the cache and the bank."""
        for section in (self.section, self.views):
            if section is not None:
                section.flush()

    def blocks(self) -> Iterator[Float[Array, " rows *axes"]]:
        """The features of all good images in order."""
        good = self.good_rows()
        place = np.searchsorted(self.distinct, self.first[good])
        paths = list(self.parts)
        for start in range(0, len(good), self.part_rows):
            part, row = np.divmod(place[start : start + self.part_rows], self.part_rows)
            block = np.empty((len(part), *self.network.shape), self.network.dtype)
            for number in np.unique(part):
                block[part == number] = open_block(paths[number])[1][row[part == number]]
            yield block

    def good_rows(self) -> Rows:
        """The images with features."""
        return np.flatnonzero(~np.isin(self.first, list(self.bad)))

    def all_bad(self) -> Reasons:
        """Bad images and copies of them, with the reason."""
        rows = np.flatnonzero(np.isin(self.first, list(self.bad))).tolist() if self.bad else []
        return {row: self.bad[int(self.first[row])] for row in rows}

    def _check_finite(self, rows: Rows, features: Float[Array, " rows *axes"]) -> None:
        is_wrong = ~np.isfinite(features).all(axis=tuple(range(1, features.ndim)))
        if is_wrong.any():
            path = self.images.table["path"][int(rows[is_wrong][0])].as_py()
            raise DegenerateError(
                f"{path}: the feature is not finite in {self.network.precision}",
                advice="--precision float32; if it is that already, the checkpoint is broken",
            )


def is_blank(features: Float[Array, " rows *axes"]) -> Bool[Array, " rows"]:
    """Which rows are NaN."""
    return np.isnan(features.reshape(len(features), -1)[:, 0])


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
    """Compute the features of all images into the store `out`, or resume an earlier call.

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
        banks: the root of view banks; plain views of what is computed are kept there, so that no bank computes them.
    """
    from justright.features.vectors import VectorNetwork, store_vectors  # it imports this module

    if isinstance(backbone, VectorNetwork):
        return store_vectors(images, backbone, out)
    if not len(images) or batch_size < 1:
        raise DataError(f"{len(images)} images in batches of {batch_size}", expected="at least one of both")
    n_workers = n_cores() if n_workers is None else n_workers
    with one_core_a_thread():
        network, place = FeatureNetwork(backbone, batch_size, precision, pooling), place_of(out)
        key = network.key()
        expect_place(place, Header(**key), overwrite, parts=tuple(key))  # before all images are read
        ids, unreadable = _content_ids(images, engine or threads(max(n_workers, 1)))
        refuse_bad_rows(max_bad, images, unreadable)
        header = Header(**key, data=data_fingerprint(ids, images.table))
        if begin_store(place, header, overwrite):
            return FeatureTable.open(place)
        about = {"backbone": backbone.name, "pooling": pooling, "precision": precision}
        section = None if cache is None else cache.section(key, about)
        views = None
        if banks is not None and network.gives_views and batch_size == BATCH_SIZE:
            views = KeptBanks(banks).section(*view_key(backbone, Plain(), 0, "float32"))
        with locked_store(place) as folder:
            work = Extraction(images, ids, unreadable, network, folder / PARTS, section, max_bad, views)
            try:
                with closing(work.run(n_workers, engine)) as steps:  # after Ctrl-C workers end before the store closes
                    for _ in track(steps, work.n_left, f"extracting {', '.join(images.datasets)}"):
                        pass
            finally:
                work.flush()
            index = store_index(images, ids, work.good_rows(), place)
            write_store(place, header, work.blocks(), index, quarantined(images, work.all_bad()))
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


def store_index(images: ImageSet, content_ids: list[str], rows: Rows, out: Place) -> pa.Table:
    """The table of some rows, ids filled in, sources named as seen from the store: `open_images` reads it."""
    table = images.table
    ids = pc.coalesce(table["id"], pa.array(content_ids, pa.string()))
    saved = {name: _saved_as(reader, out) or f"{name.partition(':')[0]}:" for name, reader in images.readers.items()}
    sources = pa.array([saved[name] for name in table["source"].to_pylist()], pa.string()).cast(NAME)
    table = with_columns(table, {"id": ids, "source": sources})
    return table.take(pa.array(rows)).combine_chunks()


def _saved_as(reader: Reader, out: Place) -> str | None:
    """A source as seen from the store; from elsewhere it is seen as from here."""
    if isinstance(out, Path):
        return reader.saved_as(out.absolute())
    return reader.saved_as(Path("/")) and reader.source
