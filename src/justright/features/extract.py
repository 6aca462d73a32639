"""Images to a FeatureTable: test transform, no randomness, order kept.

On a CPU each worker is a thread that decodes a batch and runs the network on it with one core, so cores never wait for
each other, as they do when torch splits every operation over all of them. For another device workers decode ahead and
the calling thread runs the network. An engine replaces the threads by processes, of this machine or of many.

The result does not depend on the number of workers, nor on a kill and a resume. The features of an image may depend, in
the last bits, on the shape of the batch. So every batch has the same shape (missing and bad images leave a black one in
their place). In a batch of the same shape neither the place nor the neighbors of an image change its bits on the CPUs
tried, so cached features equal computed ones; hardware that breaks this changes rounding, never more.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Float, Int
from torch import Tensor

from justright.data.columns import NAME, with_columns
from justright.data.image_set import ImageSet, sent
from justright.data.pool import dataset_title
from justright.data.quarantine import MAX_BAD, Quarantined, reason_of, refuse_above
from justright.data.readers import Reader
from justright.data.transforms import ImageRecipe, Plain
from justright.features.backbone import Backbone
from justright.features.bank import pack, record_type, view_key
from justright.features.cache import FeatureCache, Ids, KeptBanks, Section, digests
from justright.features.choices import BATCH_SIZE, Pooling, Precision
from justright.features.cuts import Stored
from justright.features.store import (
    PARTS,
    Header,
    begin_store,
    data_fingerprint,
    expect_place,
    locked_store,
    write_store,
)
from justright.features.table import BLOCK_ROWS, FeatureTable
from justright.features.workers import decode_and_compute, one_core_a_thread, refuse_other_tools, tools
from justright.utils.context import current, track, use
from justright.utils.errors import BadImageError, DataError, DegenerateError
from justright.utils.parallel import Engine, n_cores
from justright.utils.remote import Place, place_of
from justright.utils.types import Array

PART_BATCHES = 16  # a kill loses at most so many batches, and those that workers compute at that moment

Batch: TypeAlias = Float[Tensor, "batch 3 side side"]
Features: TypeAlias = Float[Array, " batch *axes"]
Bad: TypeAlias = Mapping[int, Quarantined]  # bad images by row
PLACE = ["dataset", "source", "path"]  # columns that say where an image is


class FeatureNetwork:
    """Computes features of a batch. Their bytes depend on the images and on the values in `key` only."""

    def __init__(self, backbone: Backbone, batch_size: int, precision: Precision, pooling: Pooling):
        self.backbone, self.batch_size, self.precision, self.pooling = backbone, batch_size, precision, pooling
        self.device = backbone.device
        self.dtype = "float32" if precision == "float32" else "float16"
        black, _ = self(torch.zeros(1, 3, backbone.recipe.resolution, backbone.recipe.resolution))
        self.shape = black.shape[1:]

    def key(self) -> dict[str, Any]:
        """The header of a store without the data; the key of the cache."""
        computation = {"precision": self.precision, "batch_size": self.batch_size, "batch_norm": "as it is"}
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "backbone": {
                "name": self.backbone.name,
                "fingerprint": self.backbone.fingerprint,
                "pooling": self.pooling,
            },
            "transform": asdict(self.backbone.recipe),
            "computation": computation | self.tools(),
        }

    def tools(self) -> dict[str, str]:
        """Device, runtime and versions that may change the last bits."""
        return tools(self.device, self.backbone.runtime if self.pooling == "class" else "torch")

    def __call__(self, batch: Batch) -> tuple[Features, Stored]:
        """The features of a batch as they are stored, and the output of the frozen prefix on the way, if any."""
        half = None if self.precision == "float32" else getattr(torch, self.precision)
        # autocast keeps norms, softmax and sums in float32, which half precision needs
        with torch.inference_mode(), torch.autocast(self.device.type, half) if half else nullcontext():
            images = batch.to(self.device, non_blocking=True)
            stored: Stored = self.backbone.prefix(images) if self.pooling == "class" else ()
            features = self.backbone.suffix(stored) if stored else self.backbone(images, self.pooling)
        return features.float().cpu().numpy().astype(self.dtype), stored

    @property
    def gives_views(self) -> bool:
        """Whether the plain view that a bank stores is computed on the way to the feature."""
        return self.pooling == "class" and self.precision == "float32"


class BatchFeatures(NamedTuple):
    """The result of a batch of images."""

    features: Array
    bad: Bad  # by position in the batch
    records: Array | None  # plain views as a bank stores them, if requested


def decode_images(
    readers: Mapping[str, Reader], recipe: ImageRecipe, batch_size: int, table: pa.Table
) -> tuple[Array, Bad]:
    """Decode the images of a table: a batch of pixels, with a black image for each bad or missing one."""
    images, bad = ImageSet(table, readers), {}
    pixels = torch.zeros(batch_size, 3, recipe.resolution, recipe.resolution)
    for row in range(len(images)):
        try:
            pixels[row] = recipe.preprocess(images.image(row))
        except Exception as error:  # decoders raise many kinds of errors for damaged files
            bad[row] = bad_image(images, row, error)
    return pixels.numpy(), bad


def bad_image(images: ImageSet, row: int, error: Exception) -> Quarantined:
    """An image that cannot be read, with the reason."""
    place = images.table.select(PLACE).slice(row, 1).to_pylist()[0]
    kind, reason = reason_of(error, place["path"])
    return Quarantined(**place, kind=kind, reason=reason)


def compute_features(
    network: FeatureNetwork,
    expected_tools: Mapping[str, str],
    layout: np.dtype[np.void] | None,
    decoded: tuple[Array, Bad],
) -> BatchFeatures:
    """Compute the features of a decoded batch and, with the layout of a bank, its records."""
    refuse_other_tools(network.tools(), expected_tools)
    pixels, bad = decoded
    features, stored = network(torch.from_numpy(pixels))
    records = None if layout is None else pack(layout, network.backbone.stored_names, stored)
    return BatchFeatures(features, bad, records)


@dataclass(eq=False)
class Extraction:
    """Computes the features that a section lacks: of the cache, or of a folder in the store."""

    images: ImageSet
    ids: Ids
    network: FeatureNetwork
    section: Section  # features by id
    views: Section | None  # plain views, if they are kept too
    bad: dict[int, Quarantined]  # at first the images without content id
    max_bad: float

    def __post_init__(self) -> None:
        is_missing = self.section.missing(self.ids)
        is_missing[list(self.bad)] = False
        self.missing = np.flatnonzero(is_missing)

    def compute(self, n_workers: int) -> None:
        """Compute what is missing and show progress; an interruption loses at most one batch."""
        steps = self._steps(n_workers)
        try:
            with closing(steps):  # after Ctrl-C too, so that workers end before the store closes
                for _ in track(steps, len(self.missing), f"extracting {titles(self.images)}"):
                    pass
        finally:
            self.section.flush()
            if self.views is not None:
                self.views.flush()

    def _steps(self, n_workers: int) -> Generator[None, None, None]:
        """Compute what is missing; one step for each image."""
        network, size = self.network, self.network.batch_size
        names, shapes = network.backbone.stored_names, network.backbone.stored_shapes
        layout = None if self.views is None else record_type(names, shapes, "float32")
        decode = partial(decode_images, self.images.readers, network.backbone.recipe, size)
        compute = partial(compute_features, network, network.tools(), layout)
        batches = [self.missing[start : start + size] for start in range(0, len(self.missing), size)]
        tables = (sent(self.images, rows) for rows in batches)
        with closing(decode_and_compute(decode, compute, tables, network.device, n_workers)) as results:
            for number, (rows, batch) in enumerate(zip(batches, results, strict=True), start=1):
                self.bad |= {int(rows[position]): image for position, image in batch.bad.items()}
                good = np.setdiff1d(np.arange(len(rows)), list(batch.bad))
                self._check_finite(rows[good], batch.features[good])
                self.section.add(self.ids[rows[good]], batch.features[good])
                if self.views is not None and batch.records is not None:
                    self.views.add(self.ids[rows[good]], batch.records[good])
                if number % PART_BATCHES == 0 or number == len(batches):
                    self.section.flush()
                    refuse_bad(self.max_bad, self.images, self.all_bad())
                yield from repeat(None, len(rows))

    def blocks(self, rows: Int[Array, " rows"]) -> Iterator[Float[Array, " rows *axes"]]:
        """The features of these images in order, some at a time."""
        for start in range(0, len(rows), BLOCK_ROWS):
            is_found, features = self.section.read(self.ids[rows[start : start + BLOCK_ROWS]])
            if features is None or not is_found.all():
                problem = f"features in {self.section.folder} are lost since they were computed"
                raise DataError(problem, advice="run again")
            yield features

    def all_bad(self) -> dict[int, Quarantined]:
        """Bad images and copies of them."""
        first = {self.ids[row]: image for row, image in self.bad.items()}
        rows = np.flatnonzero(np.isin(self.ids, np.array(list(first), self.ids.dtype)))
        places = self.images.table.select(PLACE).take(pa.array(rows)).to_pylist()
        return {
            row: self.bad.get(row) or replace(first[self.ids[row]], **place)
            for row, place in zip(rows.tolist(), places, strict=True)
        }

    def _check_finite(self, rows: Int[Array, " rows"], features: Float[Array, " rows *axes"]) -> None:
        is_wrong = ~np.isfinite(features).all(axis=tuple(range(1, features.ndim)))
        if is_wrong.any():
            path = self.images.table["path"][int(rows[is_wrong][0])].as_py()
            raise DegenerateError(
                f"{path}: the feature is not finite in {self.network.precision}",
                advice="--precision float32; if it is that already, the checkpoint is broken",
            )


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
        n_workers: threads, by default one per core; 0 computes in the calling thread, with one core.
        precision: of the network; features are stored as float32, or as float16 for a half precision.
        pooling: which feature of an image, see `Backbone.forward`.
        max_bad: raise if a larger share of the images cannot be decoded; the others are listed in `quarantined`.
        cache: where features are looked up by content and kept.
        overwrite: whether to replace a store that holds something else.
        engine: where the work is done instead of in `n_workers` threads, by default that of the context; it changes no
            byte.
        banks: the root of view banks; plain views are kept there on the way, so that no bank computes them again.
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
        content_ids = images.content_column(is_strict=False, is_fresh=True).to_pylist()
        unreadable = unreadable_rows(images, content_ids)
        refuse_bad(max_bad, images, unreadable)
        header = Header(**key, data=data_fingerprint(content_ids, images.table))
        if begin_store(place, header, overwrite):
            return FeatureTable.open(place)
        views = None
        if banks is not None and network.gives_views and batch_size == BATCH_SIZE:
            views = KeptBanks(banks).section(*view_key(backbone, Plain(), 0, "float32"))
        summary = {"backbone": backbone.name, "pooling": pooling, "precision": precision}
        with locked_store(place) as folder:
            section = Section(folder / PARTS) if cache is None else cache.section(key, summary)
            with section.lease():
                work = Extraction(images, digests(content_ids), network, section, views, unreadable, max_bad)
                with use(engine=engine or current().engine):
                    work.compute(n_workers)
                bad = work.all_bad()
                refuse_bad(max_bad, images, bad)
                good = np.setdiff1d(np.arange(len(images)), list(bad))
                index = store_index(images, content_ids, good, place)
                write_store(place, header, work.blocks(good), index, bad)
            if cache is not None:
                cache.make_room(0)
    return FeatureTable.open(place, verify=False)


def store_index(images: ImageSet, content_ids: list[str], rows: Int[Array, " rows"], out: Place) -> pa.Table:
    """The table of some rows with all ids, and sources relative to the store, for `open_images`."""
    table = images.table
    ids = pc.coalesce(table["id"], pa.array(content_ids, pa.string()))
    saved_as = {name: _saved_as(reader, out) or f"{name.partition(':')[0]}:" for name, reader in images.readers.items()}
    sources = pa.array([saved_as[name] for name in table["source"].to_pylist()], pa.string()).cast(NAME)
    table = with_columns(table, {"id": ids, "source": sources})
    return table.take(pa.array(rows)).combine_chunks()


def _saved_as(reader: Reader, out: Place) -> str | None:
    """A source relative to a store of this machine; a remote store names it as this process does."""
    if isinstance(out, Path):
        return reader.saved_as(out.absolute())
    return reader.saved_as(Path("/")) and reader.source


def unreadable_rows(images: ImageSet, content_ids: list[str]) -> dict[int, Quarantined]:
    """The images without a content id."""
    bad = {}
    for row, content_id in enumerate(content_ids):
        if not content_id:
            try:
                images.image(row)
                raise BadImageError("changes while it is read")
            except Exception as error:
                bad[row] = bad_image(images, row, error)
    return bad


def titles(images: ImageSet) -> str:
    """The names of the data sets, as messages show them."""
    return ", ".join(map(dataset_title, images.datasets))


def refuse_bad(max_bad: float, images: ImageSet, bad: Bad) -> None:
    """Raise if more than the share `max_bad` of the images is bad, or if all are."""
    refuse_above(max_bad, list(bad.values()), len(images), titles(images))
