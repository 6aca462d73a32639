"""ImageSet: an immutable table of images, the same for a benchmark and a user's own folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int
from PIL import Image

from justright.data.columns import (
    COLUMNS,
    CONTENT,
    NAMES,
    SAVED_BYTES,
    column,
    names_column,
    nfc,
    nfc_column,
    rename_sources,
    superclass_column,
    superclass_columns,
    with_columns,
)
from justright.data.decoding import decode
from justright.data.parquet import write_parquet
from justright.data.readers import Reader
from justright.utils.context import track
from justright.utils.errors import BadImageError, DataError
from justright.utils.hashing import hash_bytes
from justright.utils.parallel import in_threads
from justright.utils.types import UNLABELED, Array, Labels

HASHED_AT_ONCE = 64  # images per task of a thread: starting a task takes longer than hashing an image
N_THREADS = 8
SENT = ("id", "source", "path", "dataset")  # columns that a worker needs
CHANGED = "the file was changed or replaced since the run"


@dataclass(frozen=True)
class ImageSet:
    """A table of images and the readers of their pixels. Images are decoded when they are read.

    Columns:
        id: given by the table of the user, or the content id; null before `with_ids`.
        source, path: where the pixels are.
        label: the data set's official class index, -1 if unknown.
        class_name, dataset: names of the class and the data set.
        split: the data set's own train or test.
        superclass, superclass2, ...: the groups above the class, fine to coarse.
        content: only in the sets of a run, see `with_content`.
    """

    table: pa.Table
    readers: Mapping[str, Reader]
    _content: pa.ChunkedArray | None = field(default=None, repr=False, compare=False)  # content ids, once computed

    @classmethod
    def of(
        cls, reader: Reader, *, dataset: str, path: Any, superclasses: Sequence[Any] = (), **columns: Any
    ) -> ImageSet:
        """Make a set from the images of one reader. Each column is a sequence with one entry per image, or None.

        `superclasses` holds one such sequence per level, fine to coarse.
        """
        if unknown := sorted(set(columns) - set(COLUMNS)):
            raise TypeError(f"unknown columns {unknown}; an ImageSet has {sorted(COLUMNS)}")
        n = len(path)
        for name, value in (("source", reader.source), ("dataset", dataset)):
            columns[name] = names_column([value], np.zeros(n, np.int32))
        columns = dict.fromkeys(COLUMNS) | columns | {"path": path}
        columns |= {superclass_column(depth): names for depth, names in enumerate(superclasses, start=1)}
        typed = {name: column(name, values, n) for name, values in columns.items()}
        typed |= {name: nfc_column(typed[name]) for name in typed if name in NAMES or name not in COLUMNS}
        return cls(pa.table(typed), {reader.source: reader})

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return f"ImageSet({', '.join(self.datasets)}: {len(self):,} images, {len(self.classes):,} classes)"

    @cached_property
    def labels(self) -> Labels:
        """One label per image, -1 if unknown."""
        labels = self.table["label"].to_numpy().astype(np.int64)
        labels.flags.writeable = False
        return labels

    @property
    def ids(self) -> list[str]:
        """The id of each image in the table. A user's table may hold any, so caches use `content_ids` instead."""
        if self.table["id"].null_count:
            raise DataError("these images have no ids yet", advice="images.with_ids(), which reads each file once")
        return list(self.table["id"].to_pylist())

    @property
    def paths(self) -> list[str]:
        """The path of each image inside its source."""
        return list(self.table["path"].to_pylist())

    @property
    def datasets(self) -> list[str]:
        """The names of the data sets, in order of appearance."""
        return list(self.table["dataset"].unique().to_pylist())

    @cached_property
    def classes(self) -> dict[int, str]:
        """Class name by label, in the order of the labels."""
        labels, names = (self._first_of_each_class[name].to_pylist() for name in ("label", "class_name"))
        return {label: str(label) if name is None else name for label, name in zip(labels, names, strict=True)}

    @cached_property
    def hierarchy(self) -> dict[int, tuple[str, ...]]:
        """Super-categories by label, from coarse to fine; empty if there are none."""
        coarse_first = reversed(superclass_columns(self.table))
        levels = [self._first_of_each_class[name].to_pylist() for name in coarse_first]
        return {label: tuple(level[i] for level in levels if level[i]) for i, label in enumerate(self.classes)}

    @cached_property
    def _first_of_each_class(self) -> pa.Table:
        labels, first = np.unique(self.labels, return_index=True)
        return self.table.take(pa.array(first[labels != UNLABELED]))

    def image(self, row: int) -> Image.Image:
        """Decode one image, RGB; raises BadImageError with the reason."""
        reader, path = self._reader(row), self.table["path"][row].as_py()
        if not reader.has_files or self.known_content(row) is None:
            return reader.image(path)
        return decode(self.encoded(row), path)

    def encoded(self, row: int) -> bytes:
        """The file of one image; raises BadImageError if its content is not that of the column `content`."""
        reader, path, content = self._reader(row), self.table["path"][row].as_py(), self.known_content(row)
        data = reader.encoded(path)
        if content is not None and reader.has_files and hash_bytes(data) != content:
            raise BadImageError(f"{path}: {CHANGED}")
        return data

    def known_content(self, row: int) -> str | None:
        """The content id that an image had when a run read it; None if unknown."""
        content: str | None = self.table[CONTENT][row].as_py() if CONTENT in self.table.column_names else None
        return content

    def computed_id(self, row: int) -> str:
        """The content id of one image. An image without a file has the one that a run wrote, since it cannot change."""
        reader, content = self._reader(row), self.known_content(row)
        if reader.has_files or content is None:
            return reader.content_id(self.table["path"][row].as_py())
        return content

    def _reader(self, row: int) -> Reader:
        return self.readers[self.table["source"][row].as_py()]

    def content_ids(self, *, is_strict: bool = True) -> list[str]:
        """`content_column` as a list."""
        return list(self.content_column(is_strict=is_strict).to_pylist())

    def content_column(self, *, is_strict: bool = True, is_fresh: bool = False) -> pa.ChunkedArray:
        """The hash of each image's content, whatever ids the table has. Computed once for a set and its subsets.

        Parameters:
            is_strict: raise BadImageError for an unreadable image; otherwise its id is empty.
            is_fresh: look at the files again; only those that changed are read.
        """
        content = self._content
        if content is None or is_fresh:
            content = self._compute_content()
            object.__setattr__(self, "_content", content)
        if is_strict and (row := pc.index(content, "").as_py()) >= 0:
            self.computed_id(row)  # raises the reason
            return self.content_column(is_fresh=True)  # it is readable by now
        return content

    def _compute_content(self) -> pa.ChunkedArray:
        def content_id(row: int) -> str:
            try:
                return self.computed_id(row)
            except BadImageError:
                return ""

        def ids_of(rows: range) -> pa.Array:
            return pa.array(map(content_id, rows), pa.string())

        # reading and hashing release the interpreter's lock; a few images are read before threads would start
        parts = row_ranges(len(self), HASHED_AT_ONCE)
        ids = in_threads(ids_of, parts, N_THREADS if len(parts) > 1 else 0)
        tracked = track(ids, len(parts), f"hashing images, {HASHED_AT_ONCE} per step")
        return pa.table({CONTENT: pa.chunked_array(list(tracked), pa.string())}).combine_chunks()[CONTENT]

    def with_content(self, content: pa.ChunkedArray | None = None) -> ImageSet:
        """The same table with a column `content`: the given one, or what the files hold now.

        From then on `image` and `encoded` reject a file with other content. Images without a file keep this id after
        the table is saved and opened again.
        """
        if content is None:
            content = self.content_column(is_strict=False)
        table = self.table.drop_columns([CONTENT]) if CONTENT in self.table.column_names else self.table
        return ImageSet(table.append_column(CONTENT, _null_if_empty(content)), self.readers)

    def changed(self) -> list[str]:
        """The files whose content is not that of the column `content`, with the reason."""
        current = self.content_column(is_strict=False, is_fresh=True).to_pylist()
        reasons = []
        for path, content, expected in zip(self.paths, current, self.table[CONTENT].to_pylist(), strict=True):
            if not content:
                reasons.append(f"{path}: missing or unreadable")
            elif content != expected:
                reasons.append(f"{path}: {CHANGED}")
        return reasons

    def with_ids(self, *, is_strict: bool = True) -> ImageSet:
        """Fill missing ids with content ids.

        An unreadable image raises BadImageError; unless `is_strict`, it stays without an id.
        """
        if not self.table["id"].null_count:
            return self
        return self.named_by(pc.coalesce(self.table["id"], _null_if_empty(self.content_column(is_strict=is_strict))))

    def named_by(self, ids: Sequence[str] | pa.ChunkedArray) -> ImageSet:
        """The same images with these ids."""
        return self.replaced({"id": column("id", ids, len(self))})

    def named(self, dataset: str) -> ImageSet:
        """The same images as one data set of this name."""
        return self.replaced({"dataset": names_column([nfc(dataset)], np.zeros(len(self), np.int32))})

    def replaced(self, columns: Mapping[str, Any]) -> ImageSet:
        """The same images with other values in these columns."""
        return ImageSet(with_columns(self.table, columns), self.readers, self._content)

    def take(self, rows: Sequence[int] | Int[Array, " rows"]) -> ImageSet:
        """The images at these positions, in this order."""
        indices = pa.array(np.asarray(rows, dtype=np.int64))
        content = None if self._content is None else self._content.take(indices)
        return ImageSet(self.table.take(indices), self.readers, content)

    def of_classes(self, labels: Iterable[int]) -> ImageSet:
        """The images of these classes, in order."""
        return self.take(np.flatnonzero(np.isin(self.labels, list(labels))))

    def of_split(self, split: str) -> ImageSet:
        """The images of the data set's own split of this name ("train", "test"), in order."""
        return ImageSet(self.table.filter(pc.equal(self.table["split"].cast(pa.string()), split)), self.readers)

    def without_labels(self) -> ImageSet:
        """The same images without labels, class names, splits and super-categories."""
        hidden = {name: column(name, None, len(self)) for name in ("label", "class_name", "split")}
        return ImageSet(with_columns(self.table.select(list(COLUMNS)), hidden), self.readers, self._content)

    @staticmethod
    def concat(sets: Sequence[ImageSet]) -> ImageSet:
        """Concatenate tables, labels unchanged; `merge_pool` gives several sets one label space."""
        table = pa.concat_tables([images.table for images in sets], promote_options="default").unify_dictionaries()
        readers = {source: reader for images in sets for source, reader in images.readers.items()}
        known = [images._content for images in sets if images._content is not None]
        content = None
        if len(known) == len(sets):
            content = pa.chunked_array([chunk for column in known for chunk in column.chunks], pa.string())
        return ImageSet(table, readers, content)

    def save(self, path: Path) -> None:
        """Write the table as Parquet, for `open_images`.

        Roots are written relative to the file. Images in memory are written into it.
        """
        used = self.table["source"].unique().to_pylist()
        saved_as = {source: self.readers[source].saved_as(path.parent) for source in used}
        table = rename_sources(self.table, {source: name or SAVED_BYTES for source, name in saved_as.items()})
        if None in saved_as.values():
            is_inside = pc.equal(table["source"].cast(pa.string()), SAVED_BYTES).to_numpy()
            images = [self.encoded(row) if is_inside[row] else None for row in range(len(self))]
            paths = [str(row) if is_inside[row] else path for row, path in enumerate(self.paths)]
            table = with_columns(table, {"path": pa.array(paths)})
            table = table.append_column(SAVED_BYTES, pa.array(images, pa.binary()))
        write_parquet(table, path)


def sent(images: ImageSet, rows: range | Int[Array, " rows"]) -> pa.Table:
    """The table of these rows, in ascending order, for a worker, which opens it as `ImageSet(table, readers)`."""
    if not len(rows):
        return images.table.select(SENT).slice(0, 0)
    first, last = int(rows[0]), int(rows[-1])
    span = images.table.select(SENT).slice(first, last - first + 1)  # take would go through the whole table
    return span.take(pa.array([int(row) - first for row in rows])).combine_chunks()


def row_ranges(n: int, size: int) -> list[range]:
    """Consecutive ranges from 0 to `n`, `size` numbers in each."""
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


def _null_if_empty(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(names, ""), pa.scalar(None, pa.string()), names)
