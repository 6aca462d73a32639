"""Tables of paths and labels, and tables that `ImageSet.save` wrote, as an ImageSet."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from justright.data.catalog.glyphs import GlyphReader
from justright.data.columns import (
    NAME,
    SAVED_BYTES,
    nfc,
    nfc_column,
    path_values,
    rename_sources,
    superclass_columns,
    text_column,
    whole_labels,
    with_columns,
)
from justright.data.image_set import ImageSet
from justright.data.parquet import read_parquet
from justright.data.readers import BytesReader, FolderReader, Reader, ZipReader
from justright.utils.errors import DataError, MissingDataError
from justright.utils.types import UNLABELED, Array

PATH_NAMES = ("path", "file", "filename", "file_name", "image")
LAYOUT = (
    "a column path (relative to the folder of the table), and where known label, class_name, dataset, split, id, "
    "and superclass, superclass2, ... from fine to coarse"
)
SAVE_AS_CSV = "save the table as CSV, in UTF-8 and with commas between the columns"


def open_manifest(file: Path) -> ImageSet:
    """Open the images that a CSV or Parquet file lists, relative to its folder."""
    table = read_table(file)
    images = images_of_table(table, FolderReader(file.parent.absolute()), file.stem, str(file))
    return _with_sources(images, table, file) if "source" in table.column_names else images


def read_table(file: Path) -> pa.Table:
    """Read a CSV, every cell as text, or a Parquet file, memory-mapped."""
    if not file.is_file():
        raise MissingDataError(f"no such file: {file}")
    try:
        return read_parquet(file) if file.suffix.lower() == ".parquet" else read_csv(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{file} cannot be read: {error}", expected=f"CSV or Parquet with {LAYOUT}", advice=SAVE_AS_CSV
        ) from error


def read_csv(source: Path | bytes) -> pa.Table:
    """Read a CSV with a header, every cell as text, empty cells as nulls."""

    def opened() -> Any:  # a file of its own for each reader: that of the header reads on in the background
        return pa.BufferReader(source) if isinstance(source, bytes) else source

    kinds = dict.fromkeys(pa_csv.open_csv(opened()).schema.names, pa.string())
    as_text = pa_csv.ConvertOptions(column_types=kinds, strings_can_be_null=True, null_values=[""])
    return pa_csv.read_csv(opened(), convert_options=as_text)


def images_of_table(table: pa.Table, reader: Reader, dataset: str, origin: str, prefix: str = "") -> ImageSet:
    """Make an ImageSet from the columns of LAYOUT; `prefix` goes before every path, errors name the `origin`."""
    paths = path_values(table, path_column(table.column_names, origin), origin)
    label, class_name = _labels(table, origin)
    images = ImageSet.of(
        reader,
        dataset=dataset,
        path=pc.binary_join_element_wise(prefix, paths, "") if prefix else paths,
        label=label,
        class_name=class_name,
        superclasses=[text_column(table, name, origin) for name in superclass_columns(table)],
        **{name: text_column(table, name, origin) for name in ("id", "split") if name in table.column_names},
    )
    if "dataset" not in table.column_names:
        return images
    names = pc.fill_null(nfc_column(text_column(table, "dataset", origin)), nfc(dataset)).cast(NAME)
    return images.replaced({"dataset": names})


def arrow_table(columns: Sequence[tuple[str, Iterable[Any]]], origin: str) -> pa.Table:
    """An Arrow table of names and plain values; a path may be a Path, a missing value None or NaN."""
    arrays = []
    for name, values in columns:
        plain = [os.fspath(value) if isinstance(value, os.PathLike) else value for value in values]
        try:
            arrays.append(pa.array(plain, pa.string() if name == "path" else None, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            problem = f"{origin}: column {name} mixes types ({error})"
            raise DataError(problem, expected="only text, or only whole numbers, in a column") from error
    return pa.Table.from_arrays(arrays, [name for name, _ in columns])


def path_column(names: Sequence[str], origin: str) -> str:
    """The column of paths among the columns of a table."""
    for name in PATH_NAMES:
        if name in names:
            return name
    has_other_separator = len(names) == 1 and any(separator in names[0] for separator in ";\t|")
    advice = SAVE_AS_CSV if has_other_separator else "name the column with the paths of the images path"
    raise DataError(f"{origin} has the columns {', '.join(names)}", expected=LAYOUT, advice=advice)


def _labels(table: pa.Table, origin: str) -> tuple[Array | None, pa.ChunkedArray | None]:
    """Labels as integers, and class names; text labels are numbered alphabetically."""
    columns = [name for name in ("label", "class_name") if name in table.column_names]
    if not columns:
        return None, None
    texts = {name: nfc_column(text_column(table, name, origin)) for name in columns}
    if "label" in texts and (numeric := whole_labels(texts["label"], origin)) is not None:
        numbers, label_text = numeric
        names = texts.get("class_name")
        if names is None:
            names = pc.if_else(pa.array(numbers >= 0), label_text, pa.scalar(None, pa.string()))
        _check_one_name_each(numbers, names, origin)
        return numbers, names
    if len(texts) == 2:
        raise DataError(
            f"{origin}: column label holds text although there is a column class_name",
            expected="whole numbers in label, or only one of the two columns",
        )
    names = texts[columns[0]]
    classes = sorted(name for name in names.unique().to_pylist() if name is not None)
    return np.asarray(pc.fill_null(pc.index_in(names, pa.array(classes, pa.string())), UNLABELED)), names


def _check_one_name_each(labels: Array, names: pa.ChunkedArray, origin: str) -> None:
    pairs = pa.table({"label": labels, "name": names}).group_by(["label", "name"]).aggregate([]).to_pylist()
    name_of: dict[int, str | None] = {}
    for pair in pairs:
        label, name = pair["label"], pair["name"]
        if label != UNLABELED and name_of.setdefault(label, name) != name:
            raise DataError(
                f"{origin}: label {label} has the class names {name_of[label]!r} and {name!r}",
                expected="one class name a label",
            )


def _with_sources(images: ImageSet, table: pa.Table, file: Path) -> ImageSet:
    """The images of a table that `ImageSet.save` wrote, with the source of each, which is relative to the file."""
    sources = text_column(table, "source", str(file))
    if sources.null_count:
        raise DataError(f"{file}: a row has no source", expected="folder:, zip: or glyphs: in every row")
    readers = {saved: _open_source(saved, table, file) for saved in sources.unique().to_pylist()}
    renamed = {saved: reader.source for saved, reader in readers.items()}
    with_source = rename_sources(with_columns(images.table, {"source": sources}), renamed)
    return ImageSet(with_source, {reader.source: reader for reader in readers.values()})


def _open_source(saved: str, table: pa.Table, file: Path) -> Reader:
    kind, _, where = saved.partition(":")
    if kind == SAVED_BYTES and table.column_names.count(SAVED_BYTES) == 1:
        try:
            return BytesReader(str(file.absolute()), table[SAVED_BYTES].cast(pa.large_binary()))
        except pa.ArrowException as error:
            raise DataError(f"{file}: the images in it cannot be read: {error}") from error
    path = Path(os.path.normpath(file.absolute().parent / where))
    if kind in ("folder", "zip") and "\0" not in where:
        return FolderReader(path) if kind == "folder" else ZipReader(path)
    if kind == "glyphs" and (recipe := re.fullmatch(r"seed=(\d{1,20}),size=(\d{1,4})", where, re.ASCII)):
        return GlyphReader(seed=int(recipe[1]), size=int(recipe[2]))
    raise DataError(
        f"{file} names the source {saved!r}",
        expected="folder:, zip: or glyphs:",
        advice="save the set with this version",
    )
