"""Extraction: the work on one store, in shards of batches that all have one shape.

What a network gives for an image may depend, in the last bits, on the shape of the batch. So every batch has the same
shape (missing and bad images leave a black one in their place) and is made up within one shard, a fixed range of the
source. The number of workers, a kill and a resume change neither. In a batch of the same shape neither the place nor
the neighbors of an image change its bits on the CPUs tried, so what the cache gives is what would be computed; hardware
that breaks this changes rounding, never more.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import InitVar, dataclass
from itertools import repeat, tee
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int

from justright.data.image_set import ImageSet, sent
from justright.features.bad_rows import Reasons, refuse_bad_rows
from justright.features.batch_work import BatchWork, computed
from justright.features.cache import CacheSection, digests
from justright.features.extracted_views import ExtractedViews
from justright.features.feature_network import FeatureNetwork
from justright.features.store_writer import StoreWriter
from justright.features.workers import on_one_core_each
from justright.utils.errors import DegenerateError
from justright.utils.parallel import Engine
from justright.utils.types import Array

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
