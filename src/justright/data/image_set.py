"""ImageSet: one frozen table of images, the same for a benchmark and a person's own folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
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
from justright.utils.hashing import BLOCK, hash_bytes
from justright.utils.parallel import in_threads
from justright.utils.types import UNLABELED, Array, Labels

HASHED_AT_ONCE = 64  # images that a thread is given together: to be given one alone takes longer than to hash it
CHANGED = "the file was changed or replaced since the run"


@dataclass(frozen=True)
class ImageSet:
    """A table of images and the readers that find their pixels. Nothing is decoded before it is asked for.

    Columns:
        id: a name, given by whoever listed the images or made of the content; null until `with_ids`.
        source, path: where the pixels are.
        label: the data set's official class index, -1 where unknown.
        class_name: what the class is called.
        dataset: what the data set is called.
        split: the data set's own train or test.
        superclass, superclass2, ...: the groups above the class, fine to coarse.
        content: only in the sets of a run, see `with_content`.
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
        if unknown := sorted(set(columns) - set(COLUMNS)):
            raise TypeError(f"unknown columns {unknown}; an ImageSet has {sorted(COLUMNS)}")
        n = len(path)
        same = {"source": reader.source, "dataset": dataset}
        columns |= {name: names_column([value], np.zeros(n, np.int32)) for name, value in same.items()}
        columns = dict.fromkeys(COLUMNS) | columns | {"path": path}
        columns |= {superclass_column(depth): names for depth, names in enumerate(superclasses, start=1)}
        given = {name: column(name, values, n) for name, values in columns.items()}
        given |= {name: nfc_column(given[name]) for name in given if name in NAMES or name not in COLUMNS}
        return cls(pa.table(given), {reader.source: reader})

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return f"ImageSet({', '.join(self.datasets)}: {len(self):,} images, {len(self.classes):,} classes)"

    @cached_property
    def labels(self) -> Labels:
        """One label an image, -1 where unknown."""
        labels = self.table["label"].to_numpy().astype(np.int64)
        labels.flags.writeable = False
        return labels

    @property
    def ids(self) -> list[str]:
        """One id an image, as the table says; a list may claim any, so what is stored is found by `content_ids`."""
        if self.table["id"].null_count:
            problem = "the ids of these images are not known yet"
            raise DataError(problem, advice="images.with_ids() reads each file once")
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
        labels, names = (self._first_of_each_class[name].to_pylist() for name in ("label", "class_name"))
        return {label: str(label) if name is None else name for label, name in zip(labels, names, strict=True)}

    @cached_property
    def hierarchy(self) -> dict[int, tuple[str, ...]]:
        """Super-categories by label, from coarse to fine; empty where there are none."""
        coarse_first = reversed(superclass_columns(self.table))
        levels = [self._first_of_each_class[name].to_pylist() for name in coarse_first]
        return {label: tuple(level[i] for level in levels if level[i]) for i, label in enumerate(self.classes)}

    @cached_property
    def _first_of_each_class(self) -> pa.Table:
        labels, first = np.unique(self.labels, return_index=True)
        return self.table.take(pa.array(first[labels != UNLABELED]))

    def image(self, row: int) -> Image.Image:
        """Decode one image, RGB; BadImageError with a reason where that fails."""
        path = self.table["path"][row].as_py()
        reader = self._reader(row)
        if not reader.has_files or self.known_content(row) is None:
            return reader.image(path)
        return decode(self.encoded(row), path)

    def encoded(self, row: int) -> bytes:
        """One image as a file holds it; BadImageError where that is not what the column `content` says."""
        path, content = self.table["path"][row].as_py(), self.known_content(row)
        reader = self._reader(row)
        data = reader.encoded(path)
        if content is not None and reader.has_files and hash_bytes(data) != content:
            raise BadImageError(f"{path}: {CHANGED}")
        return data

    def known_content(self, row: int) -> str | None:
        """The content id that an image had when a run read it; None where nothing is known."""
        found: str | None = self.table[CONTENT][row].as_py() if CONTENT in self.table.column_names else None
        return found

    def computed_id(self, row: int) -> str:
        """The id of one image computed from its content, whatever id the table has.

        Images without a file cannot change, so their id is the one that a run wrote into the column `content`.
        """
        reader = self._reader(row)
        content = None if reader.has_files else self.known_content(row)
        return reader.content_id(self.table["path"][row].as_py()) if content is None else content

    def _reader(self, row: int) -> Reader:
        return self.readers[self.table["source"][row].as_py()]

    def content_ids(self, n_threads: int = 8, *, is_strict: bool = True) -> list[str]:
        """`content_column` as a list."""
        return list(self.content_column(n_threads, is_strict=is_strict).to_pylist())

    def content_column(self, n_threads: int = 8, *, is_strict: bool = True) -> pa.ChunkedArray:
        """One id an image, made of what its file holds now, whatever id the table has. Equal content, equal id.

        Each file is read once a process, and again only if it changed. An unreadable one raises BadImageError; unless
        `is_strict`, its id is empty.
        """

        def content_id(row: int) -> str:
            try:
                return self.computed_id(row)
            except BadImageError:
                if is_strict:
                    raise
                return ""

        def of_some(rows: range) -> list[str]:
            return list(map(content_id, rows))

        # threads help: reading and hashing both release the interpreter's lock; a few images are read before they start
        n, n_some = len(self), HASHED_AT_ONCE
        some = (range(start, min(start + n_some, n)) for start in range(0, n, n_some))
        each = chain.from_iterable(in_threads(of_some, some, n_threads if n > n_some else 0))
        found = iter(track(each, n, "hashing images"))
        parts = iter(lambda: pa.array(list(islice(found, BLOCK)), pa.string()), pa.array([], pa.string()))
        return pa.chunked_array(list(parts), pa.string())

    def with_content(self, content: pa.ChunkedArray | None = None) -> ImageSet:
        """The same table with a column `content`: `content`, or what the files hold now.

        From then on `image` and `encoded` refuse a file that holds something else. Images without a file keep the id
        that they have here after the table was saved and opened again.
        """
        if content is None:
            content = self.content_column(is_strict=False)
        content = pc.if_else(pc.fill_null(pc.not_equal(content, ""), False), content, pa.scalar(None, pa.string()))
        table = self.table.drop_columns([CONTENT]) if CONTENT in self.table.column_names else self.table
        return ImageSet(table.append_column(CONTENT, content), self.readers)

    def changed(self) -> list[str]:
        """The files that are not what the column `content` says, with the reason.

        Where nothing is known of a file, it has to be an image at least.
        """
        now = self.content_column(is_strict=False)
        found = []
        for row, (path, content) in enumerate(zip(self.paths, now.to_pylist(), strict=True)):
            known = self.known_content(row)
            if not content:
                found.append(f"{path}: missing or unreadable")
            elif known is not None and content != known:
                found.append(f"{path}: {CHANGED}")
            elif known is None and self._reader(row).has_files:
                try:
                    self.image(row)
                except BadImageError as error:
                    found.append(error.problem)
        return found

    def with_ids(self, n_threads: int = 8, *, is_strict: bool = True) -> ImageSet:
        """The same table with a content id for every image that has no id. Reads the files of those once.

        An unreadable one raises BadImageError; unless `is_strict`, it stays without an id.
        """
        rows = np.flatnonzero(self.table["id"].is_null().to_numpy())
        if not len(rows):
            return self
        found = self.take(rows).content_column(n_threads, is_strict=is_strict)
        if len(rows) < len(self):  # to their places among those that have one
            place = np.cumsum(self.table["id"].is_null().to_numpy()) - 1
            found = found.take(pa.array(np.maximum(place, 0)))
        return self.filled_with(found)

    def filled_with(self, content_ids: Sequence[str] | pa.ChunkedArray) -> ImageSet:
        """The same images with these ids where the table has none; an empty one is none."""
        found = column("id", content_ids, len(self))
        found = pc.if_else(pc.equal(found, ""), pa.scalar(None, pa.string()), found)
        return self.named_by(pc.coalesce(self.table["id"], found))

    def named_by(self, ids: Sequence[str] | pa.ChunkedArray) -> ImageSet:
        """The same images under these ids."""
        return ImageSet(with_columns(self.table, {"id": column("id", ids, len(self))}), self.readers)

    def named(self, dataset: str) -> ImageSet:
        """The same images as one data set of this name."""
        same = names_column([nfc(dataset)], np.zeros(len(self), np.int32))
        return ImageSet(with_columns(self.table, {"dataset": same}), self.readers)

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
        hidden = {name: column(name, None, len(self)) for name in ("label", "class_name", "split")}
        return ImageSet(with_columns(self.table.select(list(COLUMNS)), hidden), self.readers)

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
            table = with_columns(table, {"path": pa.array(rows)})
            table = table.append_column(SAVED_BYTES, pa.array(images, pa.binary()))
        write_parquet(table, path)
