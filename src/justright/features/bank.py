"""The view bank: views after the frozen prefix, computed once and read from disk at every step of training.

The input of the tuned suffix depends on the image, the view and frozen parameters only. So some views of each image are
drawn once, pushed through the prefix once, and training reads them from disk. They are kept by image content, see
cache.py: another bank with some of these images computes only the others. Plain views, under the test transform, are
kept by extraction too. `FreshViews` gives the same numbers and stores nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Int

from justright.data.image_set import ImageSet, sent
from justright.data.readers import Reader
from justright.data.transforms import Plain, Transform, Weak
from justright.features.backbone import Backbone
from justright.features.cache import Ids, KeptBanks, Section, digests
from justright.features.choices import BATCH_SIZE, BankPrecision
from justright.features.cuts import Stored
from justright.features.views import FreshViews, ViewDrawer, Views, pack, record_type, unpack, view_ids, view_key
from justright.features.workers import decode_and_compute, one_core_a_thread, refuse_other_tools, tools
from justright.utils.context import track
from justright.utils.errors import DataError, JustrightError
from justright.utils.hashing import hash_list, in_blocks
from justright.utils.locks import Lock
from justright.utils.parallel import Engine, n_cores
from justright.utils.seeding import generator
from justright.utils.types import Array

Missing = Bool[Array, "views images"]


@dataclass(frozen=True)
class DrawViews:
    """Draws views: from the table of some images and the numbers of their views to one array per number."""

    readers: Mapping[str, Reader]
    drawer: ViewDrawer

    def __call__(self, task: tuple[pa.Table, Sequence[int]]) -> Array:
        """Pixels, numbers x images x channels x height x width."""
        places, numbers = task
        images, n_images = ImageSet(places, self.readers), len(places)
        views = self.drawer.draw(images, [*range(n_images)] * len(numbers), np.repeat(numbers, n_images).tolist())
        return views.view(len(numbers), n_images, *views.shape[1:]).numpy()


@dataclass(frozen=True)
class ApplyPrefix:
    """Computes the records of a bank from drawn views."""

    backbone: Backbone
    layout: np.dtype[np.void]
    batch_size: int
    tools: Mapping[str, str]  # what a worker has to compute with

    def __call__(self, drawn: Array) -> list[Array]:
        """One array of records per number. All batches have one shape, so rounding does not depend on a kill."""
        backbone, n_images = self.backbone, drawn.shape[1]
        refuse_other_tools(tools(backbone.device, backbone.runtime), self.tools)
        records = []
        for views in torch.from_numpy(drawn).to(backbone.device):
            black = views.new_zeros(self.batch_size - n_images, *views.shape[1:])
            stored = backbone.prefix(torch.cat([views, black]))
            records.append(pack(self.layout, backbone.stored_names, stored)[:n_images])
        return records


class ViewBank(Views):
    """`n_views` views of each image on disk. What is kept of them is checked once, and the rest is computed.

    Parameters, beside those of `Views`:
        root: the folder of all banks, by default that of JUSTRIGHT_HOME.
        n_views: how many views of each image are stored.
        precision: float32 or float16.
        batch_size: images that go through the prefix at once.
        engine: where views are computed instead of in threads, one per core; it changes no byte.
        is_built: another process has built and checked the bank: it is neither built nor checked again.
    """

    def __init__(
        self,
        backbone: Backbone,
        images: ImageSet,
        root: Path | None = None,
        *,
        n_views: int = 2,
        precision: BankPrecision = "float16",
        batch_size: int = BATCH_SIZE,
        is_built: bool = False,
        engine: Engine | None = None,
        **of_views: Any,
    ):
        super().__init__(backbone, images, **of_views)
        if n_views < 1:
            raise JustrightError(f"{n_views} views", expected="at least 1")
        self.n_views, self.precision, self.batch_size = n_views, precision, batch_size
        self.engine, self.is_built = engine, is_built
        self.cache = KeptBanks(root)
        self.layout = record_type(backbone.stored_names, backbone.stored_shapes, precision)
        self._section: Section | None = None

    @cached_property
    def digests(self) -> Ids:
        """The images as the cache names them."""
        return np.concatenate([np.zeros(0, "S16"), *(digests(ids) for ids in in_blocks(self.ids))])

    @property
    def what(self) -> str:
        """The bank in words: "plain views", or "4 training views of each image"."""
        if isinstance(self.transform, Plain):
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
        self._section = section = self._open()
        finalize(self, section.lease().close)  # until then nobody deletes the views
        if not self.is_built:
            # A second process that needs the same views waits, and then finds what the first has computed.
            name = f".{section.folder.name}.{hash_list(in_blocks(self.ids))}.in-build"
            lock = Lock(section.folder.with_name(name), wait=True)
            try:
                missing = self._missing(section)
                if missing.any():
                    self._compute(section, missing)
            finally:
                lock.release()
        places = [section.locate(view_ids(self.digests, number)) for number in range(self.n_views)]
        self._places = np.stack(places, axis=1)  # 2 x views x images: block and row
        del section.index, self.digests  # large, and needed no more
        return self

    def _open(self) -> Section:
        return self.cache.section(*view_key(self.backbone, self.transform, self.seed, self.precision, self.batch_size))

    def _missing(self, section: Section) -> Missing:
        """Which views are not kept, or damaged; of images with equal content only the first counts."""
        all_ids = np.concatenate([view_ids(self.digests, number) for number in range(self.n_views)])
        is_missing = section.locate_intact(all_ids, f"checking {self.what}")[0] < 0
        is_first = np.zeros(len(self.digests), bool)
        is_first[np.unique(self.digests, return_index=True)[1]] = True
        return is_first & is_missing.reshape(self.n_views, -1)

    def _compute(self, section: Section, missing: Missing) -> None:
        needed = int(missing.sum()) * self.layout.itemsize
        self.cache.make_room(needed)
        free = shutil.disk_usage(section.folder).free
        if needed > free:
            raise JustrightError(
                f"the view bank needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free in {self.cache.root}",
                advice="fewer views, another root, or fresh views, which store nothing",
            )
        try:
            with closing(self._steps(section, missing)) as steps:
                for _ in track(steps, int(missing.sum()), f"computing {self.what}"):
                    pass
            section.flush()
        except OSError as error:
            raise JustrightError(
                f"{error.filename or section.folder} cannot be written: {error.strerror or error}",
                expected="disk space for the stored views",
                advice="free disk space and run again, finished views are kept; or fewer views, or fresh views",
            ) from error
        if not self.images.content_column(is_fresh=True).equals(self.ids):
            section.remove_added()
            raise DataError("images changed while their views were computed", advice="run again once they stay")

    def _steps(self, section: Section, missing: Missing) -> Generator[None, None, None]:
        """Compute the missing views, one step for each. An image is decoded once for all its views."""
        backbone, size = self.backbone, self.batch_size
        rows = np.flatnonzero(missing.any(axis=0))
        batches = [rows[start : start + size] for start in range(0, len(rows), size)]
        numbers = [np.flatnonzero(missing[:, batch].any(axis=1)).tolist() for batch in batches]
        tasks = ((sent(self.images, batch), some) for batch, some in zip(batches, numbers, strict=True))
        draw = DrawViews(self.images.readers, self.drawer)
        compute = ApplyPrefix(backbone, self.layout, size, tools(backbone.device, backbone.runtime))
        results = decode_and_compute(draw, compute, tasks, backbone.device, n_cores(), self.engine)
        with one_core_a_thread(), closing(results):
            for batch, some, views in zip(batches, numbers, results, strict=True):
                for number, records in zip(some, views, strict=True):
                    is_new = missing[number, batch]
                    section.add(view_ids(self.digests[batch[is_new]], number), records[is_new])
                    yield from repeat(None, int(is_new.sum()))

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Read one view of each row, as float32."""
        if views.min() < 0 or views.max() >= self.n_views:
            raise DataError(f"views up to {views.max()}", expected=f"0 to {self.n_views - 1}: the bank holds no others")
        if self._section is None or (places := self._places[:, views, rows]).min() < 0:
            raise DataError("these views are not in the bank", advice="bank.build() computes what is missing")
        return unpack(self._section.rows_at(places), self.backbone.stored_names)

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Views of the bank, drawn without replacement for each image."""
        if n_views > self.n_views:
            raise DataError(f"{n_views} views a step", expected=f"at most {self.n_views}, the views of the bank")
        chance = generator(self.seed, "views", epoch, step).random((self.n_views, n_images))
        return chance.argsort(axis=0)[:n_views]


def open_views(
    backbone: Backbone,
    images: ImageSet,
    root: Path | None = None,
    *,
    views: int | Literal["fresh"] = 2,
    transform: str | Transform = "weak",
    seed: int = 0,
    content_ids: pa.ChunkedArray | None = None,
    **of_bank: Any,
) -> Views:
    """A complete bank with so many views per image, or with "fresh" views that are not stored."""
    from justright.features.vectors import VectorNetwork, VectorViews  # it imports this module

    drawn: dict[str, Any] = {"transform": transform, "seed": seed, "content_ids": content_ids}
    if isinstance(backbone, VectorNetwork):
        return VectorViews(backbone, images, **drawn)
    if views == "fresh":
        return FreshViews(backbone, images, **drawn)
    return ViewBank(backbone, images, root, n_views=views, **drawn, **of_bank).build()
