"""The work on a bank: its missing shards, from views that workers compute and plain ones that extraction has left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from justright.data.image_set import ImageSet, sent
from justright.features import bank_records
from justright.features.backbone import Backbone
from justright.features.cache_section import Digests, digests
from justright.features.extracted_views import ExtractedViews
from justright.features.view_work import ViewTask, ViewWork
from justright.features.workers import on_one_core_each, one_core_a_thread
from justright.utils.context import track
from justright.utils.parallel import Engine, n_cores
from justright.utils.types import Array

Rows = Int[Array, " rows"]


class MissingBlock(NamedTuple):
    """Neighboring images, the numbers of the views that are missing of them, and the shard that each view becomes."""

    rows: range
    numbers: Sequence[int]
    paths: Sequence[Path]


@dataclass(frozen=True, eq=False)
class BankBuild:
    """Computes what is missing of a bank, in batches, and writes it block by block."""

    images: ImageSet  # named by their content
    backbone: Backbone
    work: ViewWork
    batch_size: int
    staged: ExtractedViews | None = None  # plain views that need not be computed

    def run(self, missing: Sequence[MissingBlock], engine: Engine | None, what: str) -> None:
        """Write all missing shards; progress is counted in computed views."""
        pairs = [(block, self._to_compute(block)) for block in missing]
        n_views = sum(len(rows) * len(block.numbers) for block, rows in pairs)
        tasks = (task for block, rows in pairs for task in self._tasks(rows, block.numbers))
        with one_core_a_thread(), closing(on_one_core_each(self.work, tasks, n_cores(), engine)) as results:
            done = _counted_by_view(results, n_views, what) if n_views else iter(())
            for block, rows in pairs:
                self._write(block, rows, done)
            next(done, None)  # whoever shows progress learns that it has ended

    def _to_compute(self, block: MissingBlock) -> Rows:
        rows = np.asarray(block.rows)
        return rows if self.staged is None else rows[~self.staged.holds(self._digests(rows))]

    def _digests(self, rows: range | Rows) -> Digests:
        return digests(self.images.take(rows).ids)

    def _tasks(self, rows: Rows, numbers: Sequence[int]) -> Iterator[ViewTask]:
        for start in range(0, len(rows), self.batch_size):
            batch = rows[start : start + self.batch_size]
            yield ViewTask(sent(self.images, batch), batch.tolist(), numbers)

    def _write(self, block: MissingBlock, rows: Rows, done: Iterator[list[Array]]) -> None:
        n_rows, layout = len(block.rows), self.work.layout
        with ExitStack() as files:  # images are decoded once for all views, so these shards grow together
            writers = [files.enter_context(bank_records.writing(path, layout, n_rows)) for path in block.paths]
            if self.staged is None or len(rows) == n_rows:
                for _ in range(0, n_rows, self.batch_size):
                    for write, records in zip(writers, self._records(next(done)), strict=True):
                        write(records)
            else:
                plain = self._with_staged(block, rows, done, self.staged)
                for write in writers:  # every plain view of an image is the same
                    write(plain)
        if self.staged is not None:
            self.staged.drop(self._digests(block.rows))

    def _with_staged(
        self, block: MissingBlock, rows: Rows, done: Iterator[list[Array]], staged: ExtractedViews
    ) -> Array:
        """All records of a block, some of them staged; what was lost meanwhile is computed here."""
        first, records = block.rows.start, np.zeros(len(block.rows), self.work.layout)
        others = np.setdiff1d(np.asarray(block.rows), rows)
        is_found, found = staged.read(self._digests(others))
        records[others[is_found] - first] = found
        for task in self._tasks(rows, block.numbers):
            records[np.array(task.rows) - first] = self._records(next(done))[0]
        for task in self._tasks(others[~is_found], block.numbers):
            records[np.array(task.rows) - first] = self._records(self.work(task))[0]
        return records

    def _records(self, result: list[Array]) -> list[Array]:
        """What a worker gave, as records: another device than a CPU computes here."""
        if self.work.backbone is not None:
            return result
        return [self.work.records(self.backbone, views) for views in result]


def _counted_by_view(results: Iterator[list[Array]], n_views: int, what: str) -> Iterator[list[Array]]:
    """The results. Batches are not all of one size, nor do all lack as many views: by result the time left is wrong."""

    def views() -> Iterator[list[Array] | None]:
        for result in results:
            yield from repeat(None, sum(map(len, result)) - 1)
            yield result

    return (result for result in track(views(), n_views, what) if result is not None)
