"""Columns of a table that came from outside, as the types an ImageSet has, or a sentence about why they cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from justright.data.class_names import nfc_column
from justright.data.columns import COLUMNS, NAME, NAMES, column, superclass_columns
from justright.data.image_set import SAVED_BYTES
from justright.utils.errors import DataError
from justright.utils.types import UNLABELED, Array

MAX_LABEL = np.iinfo(np.int32).max
LABELS = f"whole numbers from 0 to {MAX_LABEL:,}; empty or -1 where unknown"
LABELS_ADVICE = "numbers that are names belong into a column class_name, without a column label"


def text_column(table: pa.Table, name: str, origin: str, kept: pa.DataType | None = None) -> pa.ChunkedArray:
    """A column as text, or as it is if its type is `kept`; lists, structs, broken text and twins are refused."""
    if (n := table.column_names.count(name)) > 1:
        raise DataError(f"{origin} has {n} columns named {name}", expected="one", advice="rename or remove the others")
    values = table[name]
    try:
        values.validate(full=True)  # files may claim that any bytes are text
        if values.type == kept:
            return values
        if pa.types.is_nested(values.type):
            raise ValueError("not plain")
        text = values.cast(pa.string())
        text.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        problem = f"{origin}: column {name} holds {values.type} that cannot be read as text"
        raise DataError(problem, expected="text or numbers") from error
    return text


def path_values(table: pa.Table, name: str, origin: str) -> pa.ChunkedArray:
    """A column of paths; every row has one."""
    paths = text_column(table, name, origin)
    is_bad = np.asarray(pc.fill_null(pc.match_substring(paths, "\0"), True))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        problem = "no" if paths[row].as_py() is None else f"no readable ({paths[row].as_py()!r})"
        raise DataError(f"{origin}: row {row + 2} has {problem} {name}", expected="a path in every row")
    return paths


def whole_labels(label: pa.ChunkedArray, origin: str) -> tuple[Array, pa.ChunkedArray] | None:
    """Labels that are numbers, -1 where there is none, and the same as text; None where they are names.

    Tables of other tools hold 1.0 for 1 as soon as one label is missing. A column in which all is a number but not
    all is whole (1.5, NaN) is refused: it is neither labels nor names.
    """
    try:
        numbers = np.asarray(pc.fill_null(label.cast(pa.int64()), UNLABELED))
    except pa.ArrowInvalid:
        try:
            fractions = np.asarray(pc.fill_null(label.cast(pa.float64()), float(UNLABELED)))
        except pa.ArrowInvalid:
            return None
        is_bad = ~((fractions >= UNLABELED) & (fractions <= MAX_LABEL) & (fractions == np.floor(fractions)))
        if is_bad.any():
            row = int(np.flatnonzero(is_bad)[0])
            problem = f"{origin}: label {label[row].as_py()} in row {row + 2}"
            raise DataError(problem, expected=LABELS, advice=LABELS_ADVICE) from None
        numbers = fractions.astype(np.int64)
        label = pa.chunked_array([pa.array(numbers).cast(pa.string())])
    if len(wrong := numbers[(numbers < UNLABELED) | (numbers > MAX_LABEL)]):
        raise DataError(f"{origin}: label {wrong[0]}", expected=LABELS, advice=LABELS_ADVICE)
    return numbers, label


def saved_columns(table: pa.Table, origin: str) -> pa.Table:
    """A table with a column source, such as `ImageSet.save` wrote, with exactly the columns of an ImageSet."""
    if missing := {"path", "source"} - set(table.column_names):
        raise DataError(f"{origin} has no column {min(missing)}", expected="a table that ImageSet.save wrote")
    n = table.num_rows
    kept: dict[str, Any] = {name: pa.chunked_array([pa.nulls(n, pa.string())]) for name in COLUMNS}
    for name in [name for name in [*COLUMNS, *superclass_columns(table)] if name in table.column_names]:
        kind = None if name in ("source", "path", "label") else COLUMNS.get(name, NAME)
        kept[name] = text_column(table, name, origin, kind)
    kept["path"] = path_values(table, "path", origin)
    if kept["source"].null_count:
        raise DataError(f"{origin}: a row has no source", expected="folder:, zip: or glyphs: in every row")
    if (labels := whole_labels(kept["label"], origin)) is None:
        raise DataError(f"{origin}: column label holds text", expected=LABELS)
    kept["label"] = labels[0]
    if kept["dataset"].null_count:
        kept["dataset"] = pc.fill_null(kept["dataset"].cast(pa.string()), Path(origin).stem)
    found = {name: column(name, values, n) for name, values in kept.items()}
    found |= {name: nfc_column(found[name]) for name in (*NAMES, *superclass_columns(pa.table(found)))}
    if SAVED_BYTES in table.column_names:
        found[SAVED_BYTES] = _saved_bytes(table, kept["path"], kept["source"], origin)
    return pa.table(found)


def _saved_bytes(table: pa.Table, paths: Any, sources: Any, origin: str) -> pa.ChunkedArray:
    """The images inside the table; the path of each is its row."""
    inside = np.asarray(pc.equal(sources, SAVED_BYTES))
    try:
        if table.column_names.count(SAVED_BYTES) > 1:
            raise ValueError("two columns of bytes")
        images = table[SAVED_BYTES].cast(pa.large_binary())
        rows = np.asarray(pc.filter(paths, pa.array(inside)).cast(pa.int64()))
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"{origin}: the images inside it cannot be found: {error}") from error
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(images)):
        raise DataError(f"{origin}: image {rows.max()} of {len(images)}", expected="the row of each image in it")
    return images
