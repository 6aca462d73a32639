"""The view bank: views after the frozen prefix, computed once and read from disk at every step of training.

The input of the tuned suffix depends on the image, the view and frozen parameters only. So some views of each image are
drawn once, pushed through the prefix once, and training reads them from disk. `FreshViews` gives the same numbers and
stores nothing.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple
from weakref import finalize

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Int

from justright.data.image_set import ImageSet, sent
from justright.data.readers import Reader
from justright.data.transforms import Plain, Weak, describe
from justright.features import array_files
from justright.features.backbone import Backbone
from justright.features.cache import BANK_INDEX, KeptBanks, digests
from justright.features.choices import BATCH_SIZE, BankPrecision
from justright.features.cuts import Stored
from justright.features.extracted_views import ExtractedViews, prefix_key
from justright.features.views import FreshViews, ViewDrawer, Views, pack, record_type, unpack
from justright.features.workers import on_one_core_each, one_core_a_thread, refuse_other_tools, tools
from justright.utils.context import track
from justright.utils.errors import DataError, JustrightError
from justright.utils.files import write_json
from justright.utils.hashing import hash_list, hash_value, in_blocks
from justright.utils.locks import Lock, ReaderLease
from justright.utils.parallel import Engine, n_cores
from justright.utils.seeding import generator
from justright.utils.types import Array

_log = logging.getLogger(__name__)

FORMAT = 3
SHARD_BYTES = 64 << 20

Rows = Int[Array, " rows"]


class ViewTask(NamedTuple):
    """Images, their rows, and the numbers of the views to draw of each."""

    places: pa.Table
    rows: Sequence[int]
    numbers: Sequence[int]


@dataclass(frozen=True)
class ViewWork:
    """The work of one worker: draws views of a batch and, with a network on a CPU, computes their records.

    For another device workers return pixels, and the calling process computes `records`.
    """

    readers: Mapping[str, Reader]
    drawer: ViewDrawer
    layout: np.dtype[np.void]
    backbone: Backbone | None
    tools: Mapping[str, str]  # what a worker has to compute with
    batch_size: int | None = None  # smaller batches are filled up to it, so that all have one shape

    def __call__(self, task: ViewTask) -> list[Array]:
        """One array per view: records of the bank, or pixels."""
        images = ImageSet(task.places, self.readers)
        # a batch holds one view of the same rows whatever else is missing: rounding cannot depend on a kill
        drawn = [views.numpy() for views in self.drawer.all_of_each(images, task.rows, task.numbers)]
        if self.backbone is None:
            return drawn
        refuse_other_tools(tools(self.backbone.device, self.backbone.runtime), self.tools)
        return [self.records(self.backbone, views) for views in drawn]

    def records(self, backbone: Backbone, views: Array) -> Array:
        """Drawn views as the bank stores them."""
        n = len(views)
        if self.batch_size is not None and n < self.batch_size:
            views = np.concatenate([views, np.zeros((self.batch_size - n, *views.shape[1:]), views.dtype)])
        stored = backbone.prefix(torch.from_numpy(views).to(backbone.device))
        return pack(self.layout, backbone.stored_names, stored)[:n]


class MissingBlock(NamedTuple):
    """Neighboring images, the numbers of the views that are missing of them, and the file of each view."""

    rows: range
    numbers: Sequence[int]
    paths: Sequence[Path]


class ViewBank(Views):
    """`n_views` views of each image on disk, below `root` in a directory named by all that they depend on.

    A shard is one view of some neighboring rows; finished shards are kept when a build is killed. The checksum of each
    is compared once before it is read, and a damaged one is built again.

    Parameters, beside those of `Views`:
        root: the folder of all banks.
        n_views: how many views of each image are stored.
        precision: float32 or float16.
        batch_size: images that go through the prefix at once; plain views use that of an extraction.
        shard_bytes: about how large a file gets.
        engine: where views are computed instead of in threads, one per core; it changes no byte.
        is_built: another process has built and checked the bank: it is neither built nor checked again.
    """

    def __init__(
        self,
        backbone: Backbone,
        images: ImageSet,
        root: Path,
        *,
        n_views: int = 2,
        precision: BankPrecision = "float16",
        batch_size: int = 32,
        shard_bytes: int = SHARD_BYTES,
        is_built: bool = False,
        engine: Engine | None = None,
        **of_views: Any,
    ):
        super().__init__(backbone, images, **of_views)
        if n_views < 1:
            raise JustrightError(f"{n_views} views", expected="at least 1")
        # plain views have the bytes that extraction would give them
        self.is_plain = isinstance(self.transform, Plain)
        self.batch_size = BATCH_SIZE if self.is_plain else batch_size
        self.n_views, self.engine, self.is_built = n_views, engine, is_built
        self.layout = record_type(backbone.stored_names, backbone.stored_shapes, precision)
        self.rows_per_shard = max(1, shard_bytes // self.layout.itemsize)
        n, size = len(self.images), self.rows_per_shard
        self.blocks = [range(start, min(start + size, n)) for start in range(0, n, size)]
        self.index = self._index(precision)
        self.directory = root / hash_value(self.index)[:24]
        name = "rows{:06d}-view{:03d}.npy"
        shards = np.ndindex(len(self.blocks), n_views)
        self._paths = {shard: self.directory / name.format(*shard) for shard in shards}
        self._intact: set[Path] = set()
        self._release: finalize[Any, Any] | None = None
        self._opened = lru_cache(maxsize=256)(self._open)  # each map holds a file descriptor

    def _index(self, precision: BankPrecision) -> dict[str, Any]:
        """Everything that the stored bytes depend on."""
        about = {
            "format": FORMAT,
            "transform": describe(self.transform),
            "seed": self.seed,
            "n_images": len(self.images),
            "images": hash_list(in_blocks(self.ids)),
            "precision": precision,
            "rows_per_shard": self.rows_per_shard,
        }
        return prefix_key(self.backbone) | about | ({"batch_size": self.batch_size} if self.is_plain else {})

    @property
    def what(self) -> str:
        """The bank in words: "plain views", or "4 training views of each image"."""
        if self.is_plain:
            return "plain views"
        kind = "" if isinstance(self.transform, Weak) else f"{type(self.transform).__name__.lower()} "
        return f"{self.n_views} {kind}training view{'s' * (self.n_views > 1)} of each image"

    @property
    def n_bytes(self) -> int:
        """The size of the complete bank on disk."""
        return self.layout.itemsize * len(self.images) * self.n_views

    def build(self) -> ViewBank:
        """Compute what is missing or damaged. After a kill the next call resumes, with the same bytes in the end.

        On a CPU every worker draws and computes with one core, so the bytes depend neither on the number of workers nor
        on the threads of torch; on another device or build they may differ by rounding.
        """
        # Until the bank is garbage, or the process ends, nobody deletes it.
        self._release = self._release or finalize(self, ReaderLease(self.directory).release)
        if self.is_built:
            self._intact.update(self._paths.values())
            return self
        # A second process that needs this bank waits, and then finds what the first has built.
        lock = Lock(self.directory.with_name(f".{self.directory.name}.in-build"), wait=True)
        try:
            self.directory.mkdir(exist_ok=True)
            missing, staged = self._missing(), self._staged()
            if missing:
                self._compute(missing, staged)
        finally:
            lock.release()
        if staged is not None:
            for ids in in_blocks(self.ids):
                staged.drop(digests(ids))
            staged.close()
        return self

    def _missing(self) -> list[MissingBlock]:
        """Blocks with the views that are not on disk. A shard that this bank has not checked yet is read once."""
        unchecked = [path for path in self._paths.values() if path not in self._intact and path.exists()]
        for path in track(unchecked, len(unchecked), f"checking {self.what}") if unchecked else ():
            if array_files.is_intact(path):
                self._intact.add(path)
            else:
                _log.warning("%s is damaged; it is built again", path)
                path.unlink()
        missing = []
        for block, rows in enumerate(self.blocks):
            views = [view for view in range(self.n_views) if not self._paths[block, view].exists()]
            missing.append(MissingBlock(rows, views, [self._paths[block, view] for view in views]))
        return [block for block in missing if block.paths]

    def _staged(self) -> ExtractedViews | None:
        """Plain views that extraction has left beside this bank; None if there are none, or of another precision."""
        if not self.is_plain or self.index["precision"] != "float32":
            return None
        staged = ExtractedViews(self.backbone, self.directory.parent)
        return staged if staged.folder.exists() else None

    def _compute(self, missing: list[MissingBlock], staged: ExtractedViews | None) -> None:
        KeptBanks(self.directory.parent).make_room(self.n_bytes)
        n_records = sum(len(block.rows) * len(block.paths) for block in missing)
        needed, free = n_records * self.layout.itemsize, shutil.disk_usage(self.directory).free
        if needed > free:
            raise JustrightError(
                f"the view bank needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free in {self.directory.parent}",
                advice="fewer views, another root, or fresh views, which store nothing",
            )
        write_json(self.directory / BANK_INDEX, self.index)
        own = self.backbone if self.backbone.device.type == "cpu" else None
        shape = self.batch_size if self.is_plain else None
        computed_by = tools(self.backbone.device, self.backbone.runtime)
        work = ViewWork(self.images.readers, self.drawer, self.layout, own, computed_by, shape)
        build_blocks(self, work, missing, staged)
        paths = [path for block in missing for path in block.paths]
        if not self.images.content_column(is_fresh=True).equals(self.ids):
            for path in paths:
                path.unlink(missing_ok=True)
            raise DataError("images changed while their views were computed", advice="run again once they stay")
        self._intact.update(paths)

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Read one view of each row, as float32."""
        if views.min() < 0 or views.max() >= self.n_views:
            raise DataError(f"views up to {views.max()}", expected=f"0 to {self.n_views - 1}: the bank holds no others")
        blocks, places = np.divmod(rows, self.rows_per_shard)
        pairs = list(zip(blocks.tolist(), views.tolist(), strict=True))
        # looked up once per batch, not once per row
        shards = {pair: self._opened(self._paths[pair]) for pair in set(pairs)}
        records = [shards[pair][place] for pair, place in zip(pairs, places.tolist(), strict=True)]
        return unpack(records, self.backbone.stored_names)

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Views of the bank, drawn without replacement for each image."""
        if n_views > self.n_views:
            raise DataError(f"{n_views} views a step", expected=f"at most {self.n_views}, the views of the bank")
        chance = generator(self.seed, "views", epoch, step).random((self.n_views, n_images))
        return chance.argsort(axis=0)[:n_views]

    def _open(self, path: Path) -> Array:
        if not path.exists():
            raise DataError(f"{path.name} is not in the bank yet", advice="bank.build() computes what is missing")
        if path not in self._intact and not array_files.is_intact(path):
            raise DataError(f"{path} is damaged", advice="bank.build() computes it again")
        self._intact.add(path)
        return array_files.open_array(path)


def build_blocks(
    bank: ViewBank, work: ViewWork, missing: Sequence[MissingBlock], staged: ExtractedViews | None
) -> None:
    """Compute and write missing shards, except plain views that extraction has staged; progress counts views."""

    def tasks_of(rows: Rows, numbers: Sequence[int]) -> Iterator[ViewTask]:
        for start in range(0, len(rows), bank.batch_size):
            batch = rows[start : start + bank.batch_size]
            yield ViewTask(sent(bank.images, batch), batch.tolist(), numbers)

    def ids_of(rows: range | Rows) -> Array:
        return digests(bank.images.take(rows).ids)

    def records_of(result: list[Array]) -> list[Array]:
        """The records of a result: workers return pixels where another device than a CPU computes."""
        return result if work.backbone is not None else [work.records(bank.backbone, views) for views in result]

    def all_records(block: MissingBlock, staged: ExtractedViews) -> Array:
        """The plain views of a block, some of them staged; those that were lost since are computed here."""
        first, records = block.rows.start, np.zeros(len(block.rows), work.layout)
        others = np.setdiff1d(np.asarray(block.rows), to_compute[block.rows])
        is_found, views = staged.read(ids_of(others))
        records[others[is_found] - first] = views
        for task in tasks_of(to_compute[block.rows], block.numbers):
            records[np.array(task.rows) - first] = records_of(next(results))[0]
        for task in tasks_of(others[~is_found], block.numbers):
            records[np.array(task.rows) - first] = records_of(work(task))[0]
        return records

    to_compute = {}
    for block in missing:
        rows = np.asarray(block.rows)
        to_compute[block.rows] = rows if staged is None else rows[~staged.holds(ids_of(rows))]
    n_views = sum(len(to_compute[block.rows]) * len(block.numbers) for block in missing)
    tasks = (task for block in missing for task in tasks_of(to_compute[block.rows], block.numbers))
    with one_core_a_thread(), closing(on_one_core_each(work, tasks, n_cores(), bank.engine)) as computed:
        results = _counted_by_view(computed, n_views, f"computing {bank.what}") if n_views else iter(())
        for block in missing:
            n_rows = len(block.rows)
            with ExitStack() as files:  # images are decoded once for all views, so these shards grow together
                writers = [files.enter_context(_writing_shard(path, work.layout, n_rows)) for path in block.paths]
                if staged is None or len(to_compute[block.rows]) == n_rows:
                    for _ in range(0, n_rows, bank.batch_size):
                        for write, records in zip(writers, records_of(next(results)), strict=True):
                            write(records)
                else:
                    plain = all_records(block, staged)
                    for write in writers:  # every plain view of an image is the same
                        write(plain)
            if staged is not None:
                staged.drop(ids_of(block.rows))
        next(results, None)  # ends the progress bar


@contextmanager
def _writing_shard(path: Path, layout: np.dtype[np.void], n_rows: int) -> Iterator[Any]:
    try:
        with array_files.writing_array(path, layout, (n_rows,)) as write:
            yield write
    except OSError as error:
        raise JustrightError(
            f"{path} cannot be written: {error.strerror or error}",
            expected="room for the view bank",
            advice="make room and run again, finished shards are kept; or fewer views, or fresh views",
        ) from error


def _counted_by_view(results: Iterator[list[Array]], n_views: int, what: str) -> Iterator[list[Array]]:
    """Yield the results and count views: batches differ in size, so results per second would mislead."""

    def views() -> Iterator[list[Array] | None]:
        for result in results:
            yield from repeat(None, sum(map(len, result)) - 1)
            yield result

    return (result for result in track(views(), n_views, what) if result is not None)


def open_views(
    backbone: Backbone,
    images: ImageSet,
    root: Path,
    *,
    views: int | Literal["fresh"] = 2,
    **options: Any,
) -> Views:
    """A complete bank with so many views per image, or with "fresh" views that are not stored."""
    from justright.features.vectors import VectorNetwork, VectorViews  # it imports this module

    if isinstance(backbone, VectorNetwork):
        used = ("transform", "seed", "content_ids")
        return VectorViews(backbone, images, **{name: options[name] for name in used if name in options})
    if views == "fresh":
        of_banks = ("precision", "batch_size", "shard_bytes", "is_built", "engine")
        return FreshViews(backbone, images, **{name: options[name] for name in options if name not in of_banks})
    return ViewBank(backbone, images, root, n_views=views, **options).build()
