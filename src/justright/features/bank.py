"""Views of images after the frozen prefix: how they are drawn, stored on disk, and read by training.

The input of the tuned suffix depends on the image, the view and frozen parameters only. So some views of each image are
drawn once, pushed through the prefix once, and training reads them from disk: the view bank. Views are kept by image
content, see cache.py: another bank with some of these images computes only the others. Plain views, under the test
transform, are kept by extraction too. `FreshViews` gives the same numbers and stores nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from justright.data.image_set import ImageSet, sent
from justright.data.readers import Reader
from justright.data.transforms import (
    ImageRecipe,
    Plain,
    Transform,
    Weak,
    describe,
    draw_view,
    to_pixels,
    transform_named,
)
from justright.features.backbone import Backbone
from justright.features.cache import Ids, KeptBanks, digests
from justright.features.choices import BATCH_SIZE, BankPrecision
from justright.features.cuts import Stored
from justright.features.workers import decode_and_compute, one_core_a_thread, refuse_other_tools, tools
from justright.utils.context import track
from justright.utils.errors import DataError
from justright.utils.hashing import hash_list, in_blocks
from justright.utils.locks import Lock
from justright.utils.parallel import in_threads, n_cores
from justright.utils.seeding import generator
from justright.utils.types import Array
from justright.utils.wording import count_text

Missing = Bool[Array, "views images"]


def draw_views(
    transform: Transform,
    recipe: ImageRecipe,
    seed: int,
    images: ImageSet,
    rows: Sequence[int],
    numbers: Sequence[int],
    n_threads: int = 0,
) -> Float[Tensor, "batch 3 size size"]:
    """One view of each row, by the number of the view. A row that occurs twice is decoded once.

    The random numbers depend only on the seed, the image id and the number of the view.
    """
    distinct = list(dict.fromkeys(rows))
    decoded = in_threads(lambda row: to_pixels(images.image(row)), distinct, n_threads)
    pixels = dict(zip(distinct, decoded, strict=True))

    def view(row_and_number: tuple[int, int]) -> Tensor:
        row, number = row_and_number
        image_id = images.table["id"][row].as_py()
        return draw_view(pixels[row], transform, recipe, seed=seed, image_id=image_id, view=number)

    return torch.stack(list(in_threads(view, zip(rows, numbers, strict=True), n_threads)))


def record_type(names: Sequence[str], shapes: Sequence[tuple[int, ...]], precision: BankPrecision) -> np.dtype[np.void]:
    """The layout of a stored view. The first tensor, which is large, has the precision; the others stay float32."""
    large, *small = zip(names, shapes, strict=True)
    fields = [(name, "<f4", shape) for name, shape in small]
    return np.dtype([*fields, (large[0], np.dtype(precision).newbyteorder("<").str, large[1])], align=True)


def pack(layout: np.dtype[np.void], names: Sequence[str], stored: Stored) -> Array:
    """A batch of views as records."""
    records = np.zeros(len(stored[0]), layout)  # padding is zero too: equal views, equal bytes
    for name, part in zip(names, stored, strict=True):
        with np.errstate(over="ignore"):  # checked in the next line
            records[name] = part.float().cpu().numpy()
        if layout[name].base == np.float16 and not np.isfinite(records[name]).all():
            raise DataError("activations too large for float16", expected="at most 65,504", advice="precision float32")
    return records


def unpack(records: Sequence[np.void], names: Sequence[str]) -> Stored:
    """A batch from one record per view, as float32."""
    layout = records[0].dtype
    parts = []
    for name in names:
        # Gathered by plain copies, then converted at once: one parallel region. A conversion per record would make
        # threads wait for each other at every view.
        gathered = np.empty((len(records), *layout[name].shape), layout[name].base)
        for target, record in zip(gathered, records, strict=True):
            target[...] = record[name]
        parts.append(torch.from_numpy(gathered).float())
    return tuple(parts)


def view_key(
    backbone: Backbone, transform: Transform, seed: int, precision: BankPrecision, batch_size: int = BATCH_SIZE
) -> tuple[dict[str, Any], dict[str, str]]:
    """The section of `KeptBanks` for views drawn in one way: all that their bytes depend on, and a summary."""
    key: dict[str, Any] = {
        "backbone": backbone.name,
        "prefix_fingerprint": backbone.prefix_fingerprint,
        "runtime": backbone.runtime,
        "recipe": asdict(backbone.recipe),
        "tensors": dict(zip(backbone.stored_names, map(list, backbone.stored_shapes), strict=True)),
        "precision": precision,
        "batch_size": batch_size,
        "transform": describe(transform),
    }
    if not isinstance(transform, Plain):
        key["seed"] = seed
    summary = {"backbone": backbone.name, "transform": type(transform).__name__.lower(), "precision": precision}
    return key, summary


def view_ids(ids: Ids, number: int) -> Ids:
    """The ids under which a section keeps one view of each image."""
    words = ids.view("<u8").reshape(-1, 2).copy()
    words[:, 1] += np.uint64(number)
    return words.reshape(-1).view("S16")


class Views(ABC):
    """Views of images after the frozen prefix. Rows are positions in the image set.

    Parameters:
        backbone: its prefix is applied.
        images: the images to draw views of.
        transform: how views are drawn, or its name: weak, strong or plain.
        seed: of the random numbers.
    """

    purpose = "views"  # of the random numbers that choose among stored views
    n_views: int  # how many of each image are stored

    def __init__(
        self,
        backbone: Backbone,
        images: ImageSet,
        transform: str | Transform = "weak",
        seed: int = 0,
    ):
        self.backbone, self.transform, self.seed = backbone, transform_named(transform), seed
        # A table may have any ids. Views are drawn for, and looked up by, the content of the files.
        self.images = images.named_by(images.content_column())
        self.ids = self.images.table["id"]
        self.draw = partial(draw_views, self.transform, backbone.recipe, seed)

    @abstractmethod
    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """The input of `backbone.suffix` for one view of each row."""

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Which views a step uses, drawn without replacement for each image; the same for the same arguments."""
        if n_views > self.n_views:
            raise DataError(f"{n_views} views a step", expected=f"at most {self.n_views}, the stored views")
        priority = generator(self.seed, self.purpose, epoch, step).random((self.n_views, n_images))
        return priority.argsort(axis=0)[:n_views]


class FreshViews(Views):
    """Computes the frozen prefix at every step and stores nothing, as in the published recipe."""

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Draw the views now and apply the prefix."""
        drawn = self.draw(self.images, rows.tolist(), views.tolist(), n_cores())
        return self.backbone.prefix(drawn.to(self.backbone.device))

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Views that no other step has."""
        return generator(self.seed, "views", epoch, step).integers(1 << 62, size=(n_views, n_images))


def draw_batch(
    readers: Mapping[str, Reader], draw: Callable[..., Tensor], task: tuple[pa.Table, Sequence[int]]
) -> Array:
    """Draw the views with these numbers of each image in a table: numbers x images x channels x height x width."""
    table, numbers = task
    images, n_images = ImageSet(table, readers), len(table)
    views = draw(images, [*range(n_images)] * len(numbers), np.repeat(numbers, n_images).tolist())
    return views.view(len(numbers), n_images, *views.shape[1:]).numpy()


def apply_prefix(
    backbone: Backbone, layout: np.dtype[np.void], batch_size: int, expected_tools: Mapping[str, str], drawn: Array
) -> list[Array]:
    """Compute the records of drawn views, one array per number.

    All batches have one shape, so rounding does not depend on where a killed process stopped.
    """
    refuse_other_tools(tools(backbone.device, backbone.runtime), expected_tools)
    n_images, records = drawn.shape[1], []
    for views in torch.from_numpy(drawn).to(backbone.device):
        black = views.new_zeros(batch_size - n_images, *views.shape[1:])
        stored = backbone.prefix(torch.cat([views, black]))
        records.append(pack(layout, backbone.stored_names, stored)[:n_images])
    return records


class ViewBank(Views):
    """`n_views` views of each image on disk. Stored views are checked once, and missing ones are computed.

    Parameters, beside those of `Views`:
        root: the folder of all banks, by default that of JUSTRIGHT_HOME.
        n_views: how many views of each image are stored.
        precision: float32 or float16.
        batch_size: images that go through the prefix at once.
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
        **view_options: Any,
    ):
        super().__init__(backbone, images, **view_options)
        if n_views < 1:
            raise DataError(f"{n_views} views", expected="at least 1")
        self.n_views, self.batch_size, self.is_built = n_views, batch_size, is_built
        self.cache = KeptBanks(root)
        self.section = self.cache.section(*view_key(backbone, self.transform, self.seed, precision, batch_size))
        self.layout = record_type(backbone.stored_names, backbone.stored_shapes, precision)

    @property
    def what(self) -> str:
        """The bank in words: "plain views", or "4 training views of each image"."""
        if isinstance(self.transform, Plain):
            return "plain views"
        kind = "" if isinstance(self.transform, Weak) else f"{type(self.transform).__name__.lower()} "
        return f"{count_text(self.n_views, f'{kind}training view')} of each image"

    def build(self) -> ViewBank:
        """Compute what is missing or damaged. After a kill the next call resumes, with the same bytes in the end.

        On a CPU every worker draws and computes with one core, so the bytes depend neither on the number of workers nor
        on the threads of torch; on another device or build they may differ by rounding.
        """
        section = self.section
        finalize(self, section.lease().close)  # until then no process deletes the views
        ids = np.concatenate([np.zeros(0, "S16"), *(digests(block) for block in in_blocks(self.ids))])
        if not self.is_built:
            # A second process that needs the same views waits, and then finds what the first has computed.
            name = f".{section.folder.name}.{hash_list(in_blocks(self.ids))}.in-build"
            lock = Lock(section.folder.with_name(name), wait=True)
            try:
                all_views = np.concatenate([view_ids(ids, number) for number in range(self.n_views)])
                missing = section.missing(all_views, f"checking {self.what}").reshape(self.n_views, -1)
                if missing.any():
                    self._compute(ids, missing)
            finally:
                lock.release()
        places = [section.locate(view_ids(ids, number)) for number in range(self.n_views)]
        self._places = np.stack(places, axis=1)  # 2 x views x images: number of the block, and row in it
        del section.index  # large, and needed no more
        return self

    def _compute(self, ids: Ids, missing: Missing) -> None:
        section, n_missing = self.section, int(missing.sum())
        self.cache.make_room(n_missing * self.layout.itemsize)
        with closing(self._steps(ids, missing)) as steps:
            for _ in track(steps, n_missing, f"computing {self.what}"):
                pass
        section.flush()
        if not self.images.content_column(is_fresh=True).equals(self.ids):
            section.remove_added()
            raise DataError("images changed while their views were computed", advice="run again once they stay")

    def _steps(self, ids: Ids, missing: Missing) -> Generator[None, None, None]:
        """Compute the missing views, one step for each. An image is decoded once for all its views."""
        backbone, size = self.backbone, self.batch_size
        rows = np.flatnonzero(missing.any(axis=0))
        batches = [rows[start : start + size] for start in range(0, len(rows), size)]
        numbers_of = [np.flatnonzero(missing[:, batch].any(axis=1)).tolist() for batch in batches]
        tasks = ((sent(self.images, batch), numbers) for batch, numbers in zip(batches, numbers_of, strict=True))
        draw = partial(draw_batch, self.images.readers, self.draw)
        compute = partial(apply_prefix, backbone, self.layout, size, tools(backbone.device, backbone.runtime))
        results = decode_and_compute(draw, compute, tasks, backbone.device, n_cores())
        with one_core_a_thread(), closing(results):
            for batch, numbers, views in zip(batches, numbers_of, results, strict=True):
                for number, records in zip(numbers, views, strict=True):
                    is_new = missing[number, batch]
                    self.section.add(view_ids(ids[batch[is_new]], number), records[is_new])
                    yield from repeat(None, int(is_new.sum()))

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Read one view of each row, as float32."""
        places = self._places[:, views, rows]
        if places.min() < 0:
            raise DataError("these views are not in the bank", advice="bank.build() computes what is missing")
        return unpack(self.section.rows_at(places), self.backbone.stored_names)


def open_views(
    backbone: Backbone,
    images: ImageSet,
    root: Path | None = None,
    *,
    views: int | Literal["fresh"] = 2,
    transform: str | Transform = "weak",
    seed: int = 0,
    **bank_options: Any,
) -> Views:
    """A complete bank with so many views per image, or with "fresh" views that are not stored."""
    from justright.features.vectors import VectorNetwork, VectorViews  # it imports this module

    view_options: dict[str, Any] = {"transform": transform, "seed": seed}
    if isinstance(backbone, VectorNetwork):
        return VectorViews(backbone, images, **view_options)
    if views == "fresh":
        return FreshViews(backbone, images, **view_options)
    return ViewBank(backbone, images, root, n_views=views, **view_options, **bank_options).build()
