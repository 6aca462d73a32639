"""Images to a FeatureTable: test transform, no chance, order kept.

**Who works.** On a CPU each worker is a thread that decodes a batch and runs the network on it with one core, so cores
never wait for each other, as they do when torch splits every operation over all of them. For another device workers
decode ahead and the calling thread runs the network. Threads, because Pillow and torch release the interpreter's lock
and nothing has to be copied between processes.

**Same bytes.** What a network gives for an image may depend, in the last bits, on the shape of the batch. So every
batch has the same shape (missing and bad images leave a black one in their place) and is made up within one shard, a
fixed range of the source. The number of workers, a kill and a resume change neither. In a batch of the same shape
neither the place nor the neighbors of an image change its bits on the CPUs tried, so what the cache gives is what
would be computed; hardware that breaks this changes rounding, never more.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import PIL
import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Float, Int
from torch import Tensor

from justright.data.image_set import NAME, ImageSet
from justright.data.quarantine import MAX_BAD, BadKind, Quarantined, reason_of, refuse_above
from justright.errors import DataError, DegenerateError
from justright.features.backbone import Backbone, Pooling
from justright.features.cache import CacheSection, FeatureCache, digests
from justright.features.cuts import ClassTokenCut
from justright.features.cutting import whole
from justright.features.table import FeatureTable, Header, StoreWriter, begin_store, data_print
from justright.progress import Track, silent
from justright.types import Array

Precision = Literal["float32", "bfloat16", "float16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)

BATCH_SIZE = 16  # on a CPU larger ones leave its caches: efficientnet_lite0 took 1.3 times as long with 32
SHARD_BATCHES = 16
"""A kill loses at most so many batches, and what the workers had begun."""

CACHE_ROWS = 2048
HASH_ROWS = 1024

Rows: TypeAlias = Int[Array, " rows"]
Features: TypeAlias = Float[Array, " batch *axes"]
Batch: TypeAlias = Float[Tensor, "batch 3 side side"]
Reasons: TypeAlias = Mapping[int, tuple[str, str]]
"""Kind and reason of bad images, by their position in the source."""


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

    n_workers: threads, by default one a core; 0 does all in the calling thread, with one core.
    precision: of the network; features are stored as float32, or as float16 where it is one of the halves.
    max_bad: a larger share of images that cannot be decoded is refused; the others are listed in `quarantined`.
    cache: where features are looked up by content and kept; overwrite: replace a store that holds something else.
    """
    if not len(images) or batch_size < 1:
        raise DataError(f"{len(images)} images in batches of {batch_size}", expected="at least one of both")
    n_workers = _n_cores() if n_workers is None else n_workers
    with _one_core_a_thread(), warnings.catch_warnings():
        # decode() changes the filters of the whole process for a moment; in threads that is safe only from silence
        warnings.simplefilter("ignore")
        network = _Network(backbone, batch_size, precision, pooling)
        content_ids, unreadable = _content_ids(images, max(n_workers, 1), track)
        _refuse_above(max_bad, images, unreadable)
        header = Header(**network.key(), data=data_print(content_ids, images.table))
        if begin_store(out, header, overwrite):
            return FeatureTable.open(out)
        section = None if cache is None else cache.section(network.key())
        with StoreWriter(out, header) as writer:
            work = _Extraction(images, content_ids, unreadable, network, writer, section, max_bad)
            n_left = len(images) - work.next_row
            try:
                with closing(work.run(n_workers)) as steps:  # after Ctrl-C the workers end before the store closes
                    for _ in track(steps, n_left, f"extracting {', '.join(images.datasets)}"):
                        pass
            finally:
                work.feed_cache()
            writer.finish(_index(images, content_ids, work.position, out), _quarantined(images, work.bad))
    return FeatureTable.open(out, verify=False)


def usable(device: str) -> str:
    """The name of a device, if torch can compute on it."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"the device {device!r} cannot be used: {reason}", advice="--device cpu") from error
    return device


class _Network:
    """A backbone with everything that settles the bytes of its features."""

    def __init__(self, backbone: Backbone, batch_size: int, precision: Precision, pooling: Pooling):
        self.backbone, self.batch_size, self.precision, self.pooling = backbone, batch_size, precision, pooling
        self.device = backbone.device
        self.dtype = "float32" if precision == "float32" else "float16"
        self.shape = self(self.black(1)).shape[1:]

    def key(self) -> dict[str, Any]:
        """The header of a store and the key of the cache, but for the data."""
        is_cuda = self.device.type == "cuda"
        chip = torch.cuda.get_device_name(self.device) if is_cuda else torch.backends.cpu.get_cpu_capability()
        how = {"precision": self.precision, "batch_size": self.batch_size, "device": f"{self.device.type} {chip}"}
        name = {"name": self.backbone.name, "fingerprint": self.backbone.fingerprint, "pooling": self.pooling}
        versions = {"torch": torch.__version__, "pillow": PIL.__version__}
        transform = self.backbone.recipe.as_dict()
        basics = {"shape": list(self.shape), "dtype": self.dtype}
        return basics | {"backbone": name, "transform": transform, "computation": how | versions}

    def black(self, n: int) -> Batch:
        """A batch to be filled."""
        side = self.backbone.recipe.resolution
        return torch.zeros(n, 3, side, side)

    def __call__(self, batch: Batch) -> Features:
        if not len(batch):
            return np.empty((0, *self.shape), self.dtype)
        half = None if self.precision == "float32" else getattr(torch, self.precision)
        # autocast keeps norms, softmax and sums in float32: that makes the halves sound
        with torch.inference_mode(), torch.autocast(self.device.type, half) if half else nullcontext():
            features = self._features(batch.to(self.device, non_blocking=True))
        return features.float().cpu().numpy().astype(self.dtype)

    def _features(self, batch: Tensor) -> Tensor:
        # cutting a network that is no plain ViT takes hooks, which threads would see of each other
        if self.pooling == "class" and not isinstance(self.backbone.cut, ClassTokenCut):
            return whole(self.backbone.model, batch)
        return self.backbone(batch, self.pooling)


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


class _Extraction:
    """The work on one store. `position` is the row of an image in the store, -1 for bad ones."""

    def __init__(
        self,
        images: ImageSet,
        content_ids: list[str],
        unreadable: Reasons,
        network: _Network,
        writer: StoreWriter,
        section: CacheSection | None,
        max_bad: float,
    ):
        self.images, self.network, self.writer, self.section = images, network, writer, section
        self.unreadable, self.max_bad = unreadable, max_bad
        self.ids = digests(content_ids)
        _, first, same = np.unique(self.ids, return_index=True, return_inverse=True)
        self.first = first[same]  # images with equal content are computed once
        self.first[list(unreadable)] = list(unreadable)
        self.shard_rows = network.batch_size * SHARD_BATCHES
        self.bad = {row: reason for shard in writer.shards for row, reason in shard.bad.items()}
        self.next_row = min(len(writer.shards) * self.shard_rows, len(images))
        self.position = np.full(len(images), -1)
        done = np.setdiff1d(np.arange(self.next_row), list(self.bad))
        self.position[done] = np.arange(len(done))
        self._fed = 0

    def run(self, n_workers: int) -> Generator[None, None, None]:
        """Do what is left; one step for each image."""
        parts: list[_Part] = []
        bad: dict[int, tuple[str, str]] = {}
        on_cpu = self.network.device.type == "cpu"
        work: Callable[[_Task], Any] = self._compute if on_cpu else self._load
        with closing(_in_order(work, self._tasks(), n_workers)) as results:
            for task, result in results:
                features, reasons = result if on_cpu else (self.network(result[0]), result[1])
                bad |= reasons
                is_good = np.isin(task.rows, list(reasons), invert=True)
                parts.append(_Part(task.rows[is_good], features[: len(task.rows)][is_good]))
                self._check_finite(parts[-1])
                if task.cached is not None:
                    self._finish_shard(task.start, [*parts, task.cached], bad)
                    yield from repeat(None, self.next_row - task.start)
                    parts, bad = [], {}

    def feed_cache(self, n_waiting: int = 1) -> None:
        """Give finished features to the cache once `n_waiting` images wait for it."""
        while self.section is not None and self.next_row - self._fed >= n_waiting:
            rows = np.arange(self._fed, min(self._fed + CACHE_ROWS, self.next_row))
            rows = rows[(self.position[rows] >= 0) & (self.first[rows] == rows) & ~self.section.holds(self.ids[rows])]
            self.section.add(self.ids[rows], self.writer.read(self.position[rows]))
            self._fed = min(self._fed + CACHE_ROWS, self.next_row)

    def _tasks(self) -> Iterator[_Task]:
        for start in range(self.next_row, len(self.images), self.shard_rows):
            rows = np.arange(start, min(start + self.shard_rows, len(self.images)))
            rows = rows[(self.first[rows] == rows) & np.isin(rows, list(self.unreadable), invert=True)]
            cached = _Part(rows[:0], np.empty((0, *self.network.shape), self.network.dtype))
            if self.section is not None:
                is_found, features = self.section.read(self.ids[rows])
                if features is not None:
                    cached, rows = _Part(rows[is_found], features), rows[~is_found]
            size = self.network.batch_size
            batches = [rows[i : i + size] for i in range(0, len(rows), size)] or [rows]
            yield from (_Task(start, batch) for batch in batches[:-1])
            yield _Task(start, batches[-1], cached)

    def _load(self, task: _Task) -> tuple[Batch, Reasons]:
        batch = self.network.black(self.network.batch_size if len(task.rows) else 0)
        bad = {}
        for slot, row in enumerate(task.rows.tolist()):
            try:
                batch[slot] = self.network.backbone.recipe.preprocess(self.images.image(row))
            except Exception as error:
                # decoders fail on damaged files in more ways than anyone has listed; the reason carries the error
                bad[row] = _reason(error, self.images, row)
        return batch, bad

    def _compute(self, task: _Task) -> tuple[Features, Reasons]:
        batch, bad = self._load(task)
        return self.network(batch), bad

    def _finish_shard(self, start: int, parts: list[_Part], bad: dict[int, tuple[str, str]]) -> None:
        stop = min(start + self.shard_rows, len(self.images))
        block = np.zeros((stop - start, *self.network.shape), self.network.dtype)
        for part in parts:
            block[part.rows - start] = part.features
        self.bad |= bad | {row: self.unreadable[row] for row in range(start, stop) if row in self.unreadable}
        copies = start + np.flatnonzero(self.first[start:stop] != np.arange(start, stop))
        self.bad |= {row: self.bad[first] for row in copies.tolist() if (first := int(self.first[row])) in self.bad}
        copies = copies[np.isin(copies, list(self.bad), invert=True)]
        here = self.first[copies] >= start
        block[copies[here] - start] = block[self.first[copies[here]] - start]
        if not here.all():
            block[copies[~here] - start] = self.writer.read(self.position[self.first[copies[~here]]])
        mine = {row: self.bad[row] for row in range(start, stop) if row in self.bad}
        good = np.setdiff1d(np.arange(start, stop), list(mine))
        self.position[good] = self.writer.n_rows + np.arange(len(good))
        self.writer.add(block[good - start], mine)
        self.next_row = stop
        self.feed_cache(CACHE_ROWS)
        _refuse_above(self.max_bad, self.images, self.bad)

    def _check_finite(self, part: _Part) -> None:
        is_wrong = ~np.isfinite(part.features).all(axis=tuple(range(1, part.features.ndim)))
        if is_wrong.any():
            path = self.images.table["path"][int(part.rows[is_wrong][0])].as_py()
            raise DegenerateError(
                f"{path}: the feature is not finite in {self.network.precision}",
                advice="--precision float32; if it is that already, the checkpoint is broken",
            )


def _in_order(
    work: Callable[[_Task], Any], tasks: Iterator[_Task], n_workers: int
) -> Generator[tuple[_Task, Any], None, None]:
    """Do the tasks in threads and give the results in their order, with little more begun than is being worked on."""
    if n_workers == 0:
        yield from ((task, work(task)) for task in tasks)
        return
    threads = ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(1,))
    begun: deque[tuple[_Task, Future[Any]]] = deque()
    try:
        for task in tasks:
            begun.append((task, threads.submit(work, task)))
            if len(begun) > n_workers + 1:
                first, future = begun.popleft()
                yield first, future.result()
        while begun:
            first, future = begun.popleft()
            yield first, future.result()
    finally:
        threads.shutdown(cancel_futures=True)  # after Ctrl-C, wait only for the batches being computed


def _content_ids(images: ImageSet, n_threads: int, track: Track) -> tuple[list[str], Reasons]:
    """The content id of every image, "" with a reason where there is none.

    Computed even where the table has an id: a manifest may bring ids that name something else than content.
    """
    columns = images.table.select(["source", "path"])
    unreadable: dict[int, tuple[str, str]] = {}

    def content_id(row: int, source: str, path: str) -> str:
        try:
            return images.readers[source].content_id(path)
        except Exception as error:
            unreadable[row] = _reason(error, images, row)
            return ""

    def all_ids() -> Iterator[str]:
        with ThreadPoolExecutor(n_threads) as threads:
            for start in range(0, len(images), HASH_ROWS):  # a million rows are not a million waiting futures
                block = columns.slice(start, HASH_ROWS).to_pydict()
                rows = range(start, start + HASH_ROWS)
                yield from threads.map(content_id, rows, block["source"], block["path"])

    return list(track(all_ids(), len(images), "hashing images")), unreadable


def _reason(error: Exception, images: ImageSet, row: int) -> tuple[str, str]:
    try:
        data = images.encoded(row)
    except Exception:  # the first error is the one to tell
        data = b""
    kind, reason = reason_of(error, images.table["path"][row].as_py(), data)
    return kind.value, reason


def _quarantined(images: ImageSet, bad: Reasons) -> list[Quarantined]:
    rows = sorted(bad)
    places = images.table.select(["dataset", "source", "path"]).take(pa.array(rows, pa.int64())).to_pylist()
    reasons = [bad[row] for row in rows]
    return [Quarantined(**at, kind=BadKind(kind), reason=why) for at, (kind, why) in zip(places, reasons, strict=True)]


def _refuse_above(max_bad: float, images: ImageSet, bad: Reasons) -> None:
    if len(bad) > max_bad * len(images):
        refuse_above(max_bad, _quarantined(images, bad), len(images), ", ".join(images.datasets))


def _index(images: ImageSet, content_ids: list[str], position: Int[Array, " images"], out: Path) -> pa.Table:
    """The table of the good images, ids filled in, sources named as seen from the store: `open_images` reads it."""
    table = images.table
    ids = pc.coalesce(table["id"], pa.array(content_ids, pa.string()))
    saved = {
        name: reader.saved_as(out.absolute()) or f"{name.partition(':')[0]}:" for name, reader in images.readers.items()
    }
    sources = pa.array([saved[name] for name in table["source"].to_pylist()], pa.string()).cast(NAME)
    for name, column in (("id", ids), ("source", sources)):
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table.take(pa.array(np.flatnonzero(position >= 0))).combine_chunks()


@contextmanager
def _one_core_a_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
