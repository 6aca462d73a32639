"""A table as CSV: the one that `review --export` writes, with a path and a class name in each row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from justright.data.columns import text_column, with_columns, write_csv
from justright.data.manifest import path_column, read_table
from justright.review.formats import Format, GivenLabel, LabelSheet
from justright.review.image_names import ImageNames
from justright.utils.errors import DataError

LABEL_COLUMNS = ("class_name", "category", "label")


def write(sheet: LabelSheet, file: Path) -> None:
    """Write the table; paths are relative to the root."""
    write_csv(with_columns(sheet.table, {"path": pa.array(sheet.names.names)}), file)


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The first of `LABEL_COLUMNS` that the table has; `category` is the column of predictions.csv."""
    table, origin = read_table(path), str(path)
    names = [name for name in LABEL_COLUMNS if name in table.column_names]
    if not names:
        expected = f"a column of paths, and one of {', '.join(LABEL_COLUMNS)}"
        raise DataError(f"{path} has the columns {', '.join(table.column_names)}", expected=expected)
    paths = text_column(table, path_column(table.column_names, origin), origin).to_pylist()
    labels = text_column(table, names[0], origin).to_pylist()
    for row, (image, label) in enumerate(zip(paths, labels, strict=True), start=2):
        if label and not image:
            raise DataError(f"{path}: row {row} has a label and no path", expected="a path in every row")
        if label:
            yield image, label


FORMAT = Format(
    write,
    read,
    usage="Paths in {out} are relative to {root}. Change the column class_name.",
    images="",
    is_file=True,
)
