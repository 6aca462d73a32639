"""ImageSet: one frozen table of images, the same for a benchmark and a person's own folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Int
from PIL import Image

from justright.data.readers import Reader
from justright.errors import BadImageError, DataError
from justright.files import replacing
from justright.progress import Track, silent
from justright.types import UNLABELED, Array, Labels

NAME = pa.dictionary(pa.int32(), pa.string())  # a million equal names cost four bytes each
COLUMNS = {
    "id": pa.string(),
    "source": NAME,
    "path": pa.string(),
    "label": pa.int32(),
    "class_name": NAME,
    "dataset": NAME,
    "split": NAME,
}
SUPERCLASS = "superclass"
"""The finest super-category stands in this column; `superclass2`, `superclass3`, ... are coarser."""

SAVED_BYTES = "bytes"
"""Column and source of images that only a saved table holds."""


@dataclass(frozen=True)
class ImageSet:
    """A table of images and the readers that find their pixels. Nothing is decoded before it is asked for.

    Columns: `id` (content-based, null until `with_ids`), `source` and `path` (where the pixels are), `label`
    (the data set's official class index, -1 where unknown), `class_name`, `dataset`, `split` (the data set's own
    train or test) and, from fine to coarse, `superclass`, `superclass2`, ...
    """

    table: pa.Table
    readers: Mapping[str, Reader]

    @classmethod
    def of(
        cls, reader: Reader, *, dataset: str, path: Any, superclasses: Sequence[Any] = (), **columns: Any
    ) -> ImageSet:
        """Images that one reader finds. Each column is a sequence with one entry an image, or absent.

        `superclasses` holds one such sequence a level, fine to coarse.
        """
        n = len(path)
        columns |= {"path": path, "source": _same(reader.source, n), "dataset": _same(dataset, n)}
        if columns.get("label") is None:
            columns["label"] = np.full(n, UNLABELED)
        given = {name: _column(name, columns.pop(name, None), n) for name in COLUMNS}
        if columns:
            raise TypeError(f"unknown columns {sorted(columns)}; an ImageSet has {sorted(COLUMNS)}")
        for depth, names in enumerate(superclasses, start=1):
            given[superclass_column(depth)] = _column(superclass_column(depth), names, n)
        return cls(pa.table(given), {reader.source: reader})

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        names = ", ".join(self.datasets)
        return f"ImageSet({names}: {len(self):,} images, {len(self.classes):,} classes)"

    @cached_property
    def labels(self) -> Labels:
        """One label an image, -1 where unknown."""
        labels = self.table["label"].to_numpy().astype(np.int64)
        labels.flags.writeable = False
        return labels

    @property
    def ids(self) -> list[str]:
        """One content-based id an image; images with equal content share it."""
        if self.table["id"].null_count:
            raise DataError(
                "the ids of these images are not known yet", advice="images.with_ids() reads each file once"
            )
        return list(self.table["id"].to_pylist())

    @property
    def paths(self) -> list[str]:
        """Where each image lies inside its source."""
        return list(self.table["path"].to_pylist())

    @property
    def datasets(self) -> list[str]:
        """The data sets in this table, in order of appearance."""
        return list(self.table["dataset"].unique().to_pylist())

    @cached_property
    def classes(self) -> dict[int, str]:
        """Class name by label, in the order of the labels."""
        rows = self._first_of_each_class.select(["label", "class_name"]).to_pydict()
        return {
            label: str(label) if name is None else name
            for label, name in zip(rows["label"], rows["class_name"], strict=True)
        }

    @cached_property
    def hierarchy(self) -> dict[int, tuple[str, ...]]:
        """Super-categories by label, from coarse to fine; empty where there are none."""
        depths = range(self._n_levels, 0, -1)
        levels = [self._first_of_each_class[superclass_column(depth)].to_pylist() for depth in depths]
        return {label: tuple(level[i] for level in levels if level[i]) for i, label in enumerate(self.classes)}

    @property
    def _n_levels(self) -> int:
        return sum(name.startswith(SUPERCLASS) for name in self.table.column_names)

    @cached_property
    def _first_of_each_class(self) -> pa.Table:
        labels, first = np.unique(self.labels, return_index=True)
        return self.table.take(pa.array(first[labels != UNLABELED]))

    def image(self, row: int) -> Image.Image:
        """Decode one image, RGB; BadImageError with a reason where that fails."""
        return self._reader(row).image(self.table["path"][row].as_py())

    def encoded(self, row: int) -> bytes:
        """One image as a file holds it."""
        return self._reader(row).encoded(self.table["path"][row].as_py())

    def content_id(self, row: int) -> str:
        """The content-based id of one image, computed now if the table does not have it."""
        known: str | None = self.table["id"][row].as_py()
        return self._reader(row).content_id(self.table["path"][row].as_py()) if known is None else known

    def _content_id_or_none(self, row: int) -> str | None:
        try:
            return self.content_id(row)
        except BadImageError:
            return None

    def _reader(self, row: int) -> Reader:
        return self.readers[self.table["source"][row].as_py()]

    def with_ids(self, track: Track = silent, n_threads: int = 8, *, is_strict: bool = True) -> ImageSet:
        """The same table with every id filled in. Reads each file once.

        An unreadable one raises BadImageError; unless `is_strict`, it stays without an id.
        """
        if not self.table["id"].null_count:
            return self
        content_id = self.content_id if is_strict else self._content_id_or_none
        with ThreadPoolExecutor(n_threads) as threads:  # reading and hashing both release the interpreter's lock
            ids = list(track(threads.map(content_id, range(len(self))), len(self), "hashing images"))
        return ImageSet(_set(self.table, "id", pa.array(ids, pa.string())), self.readers)

    def take(self, rows: Sequence[int] | Int[Array, " rows"]) -> ImageSet:
        """The images at these positions, in this order."""
        return ImageSet(self.table.take(pa.array(np.asarray(rows, dtype=np.int64))), self.readers)

    def of_classes(self, labels: Iterable[int]) -> ImageSet:
        """The images of these classes, order kept."""
        return self.take(np.flatnonzero(np.isin(self.labels, list(labels))))

    def of_split(self, split: str) -> ImageSet:
        """The images of the data set's own part of that name ("train", "test"), order kept."""
        return ImageSet(self.table.filter(pc.equal(self.table["split"].cast(pa.string()), split)), self.readers)

    def without_labels(self) -> ImageSet:
        """The same images with every column gone that tells their class."""
        n = len(self)
        kept = {name: self.table[name] for name in ("id", "source", "path", "dataset")}
        blank = {"label": pa.array(np.full(n, UNLABELED, np.int32))} | {
            name: _column(name, None, n) for name in ("class_name", "split")
        }
        return ImageSet(pa.table({name: (kept | blank)[name] for name in COLUMNS}), self.readers)

    @staticmethod
    def concat(sets: Sequence[ImageSet]) -> ImageSet:
        """One table after the other, labels as they are; `merge_pool` gives several sets one label space."""
        table = pa.concat_tables([images.table for images in sets], promote_options="default").unify_dictionaries()
        return ImageSet(table, {source: reader for images in sets for source, reader in images.readers.items()})

    def save(self, path: Path) -> None:
        """Write the table as Parquet; `open_images` reads it back.

        Roots are written relative to the file. Pictures that live in memory only are written into it.
        """
        used = self.table["source"].unique().to_pylist()
        saved_as = {source: self.readers[source].saved_as(path.parent) for source in used}
        table = rename_sources(self.table, {source: name or SAVED_BYTES for source, name in saved_as.items()})
        if None in saved_as.values():
            inside = pc.equal(table["source"].cast(pa.string()), SAVED_BYTES).to_numpy()
            images = [self.encoded(row) if inside[row] else None for row in range(len(self))]
            rows = [str(row) if inside[row] else old for row, old in enumerate(self.paths)]
            table = _set(table, "path", pa.array(rows)).append_column(SAVED_BYTES, pa.array(images, pa.binary()))
        with replacing(path) as temporary:
            pq.write_table(table, temporary)


def superclass_column(depth: int) -> str:
    """The column of the super-category `depth` levels above the class."""
    return SUPERCLASS if depth == 1 else f"{SUPERCLASS}{depth}"


def rename_sources(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The table with other names for its sources."""
    column = table["source"].unify_dictionaries().combine_chunks()
    renamed = pa.array([names.get(source) for source in column.dictionary.to_pylist()], pa.string())
    return _set(table, "source", pa.DictionaryArray.from_arrays(column.indices, renamed))


def _same(value: str, n: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([value]))


def _column(name: str, values: Any, n: int) -> pa.Array | pa.ChunkedArray:
    kind = COLUMNS.get(name, NAME)
    if values is None:
        return pa.nulls(n, kind)
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.array(values)
    if len(values) != n:
        raise DataError(f"column {name} has {len(values):,} entries", expected=f"{n:,}, one an image")
    return values.cast(kind) if values.type != kind else values


def _set(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)
