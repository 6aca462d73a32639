"""Predictions, truth and checks from CSV or Parquet files, joined by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from jaxtyping import Bool, Float, Int

from justright.errors import DataError, MissingDataError
from justright.files import replacing
from justright.types import Array, Labels, Mask

KEYS = ("id", "path")
"""What may name an image, in this order of preference."""

# An id such as 007 must not be read as the number 7.
_TEXT = {name: pa.string() for name in (*KEYS, "class_name")}
_N_EXAMPLES = 3


@dataclass(frozen=True, eq=False)
class JudgedPredictions:
    """Clusters beside the truth, one entry per image in the order of the predictions: the arguments of `evaluate`."""

    y_true: Labels
    y_pred: Labels
    is_old: Mask
    has_kept_labels: Mask | None
    class_names: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class CheckedPredictions:
    """Clusters beside the checks of a person: the arguments of `estimate_accuracy`."""

    checked: Int[Array, " checked"]
    is_right: Bool[Array, " checked"]
    clusters: Int[Array, " images"]
    confidence: Float[Array, " images"] | None


def read_judged(predictions: Path, truth: Path) -> JudgedPredictions:
    """Join predictions (id or path, cluster) with truth (id or path, label or class_name, is_old).

    Truth may also say `has_kept_labels`. Every image must be in both files, once. Other columns are left alone.
    """
    predicted = _read(predictions, [*KEYS, "cluster"])
    known = _read(truth, [*KEYS, "label", "class_name", "is_old", "has_kept_labels"])
    # columns before rows: a wrong file is better told by what it lacks than by ids that do not fit
    y_pred, _ = _codes(predicted, "cluster", predictions)
    y_true, class_names = _classes(known, truth)
    is_old = _flags(known, "is_old", truth)
    has_kept = _flags(known, "has_kept_labels", truth) if "has_kept_labels" in known.column_names else None
    key = _shared_key(predicted, predictions, known, truth)
    row = _rows_of(predicted, known, key)
    _refuse_missing(predicted, row < 0, key, predictions, truth)
    _refuse_missing(known, _rows_of(known, predicted, key) < 0, key, truth, predictions)
    return JudgedPredictions(
        y_true[row], y_pred, is_old[row], has_kept[row] if has_kept is not None else None, class_names
    )


def read_checked(predictions: Path, checks: Path) -> CheckedPredictions:
    """Join predictions (id or path, cluster, perhaps confidence) with checks (id or path, is_right) of some of them."""
    predicted = _read(predictions, [*KEYS, "cluster", "confidence"])
    seen = _read(checks, [*KEYS, "is_right"])
    clusters, _ = _codes(predicted, "cluster", predictions)
    is_right = _flags(seen, "is_right", checks)
    confidence = None
    if "confidence" in predicted.column_names:
        confidence = _numbers(predicted, "confidence", predictions)
    key = _shared_key(seen, checks, predicted, predictions)
    row = _rows_of(seen, predicted, key)
    _refuse_missing(seen, row < 0, key, checks, predictions)
    return CheckedPredictions(row, is_right, clusters, confidence)


def copy_truth(truth: Path, to: Path) -> None:
    """Write what matters of a file of truth as Parquet."""
    table = _read(truth, [*KEYS, "label", "class_name", "is_old", "has_kept_labels"])
    _classes(table, truth), _flags(table, "is_old", truth)
    with replacing(to) as temporary:
        pq.write_table(table, temporary)


def _read(path: Path, columns: Sequence[str]) -> pa.Table:
    """Those of the columns that the file has."""
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}.")
    try:
        if path.suffix.lower() == ".csv":
            options = pyarrow.csv.ConvertOptions(column_types=_TEXT)
            table = pyarrow.csv.read_csv(path, convert_options=options)
            return table.select([name for name in columns if name in table.column_names])
        if path.suffix.lower() == ".parquet":
            present = pq.read_schema(path).names
            return pq.read_table(path, columns=[name for name in columns if name in present])
    except pa.ArrowException as error:
        raise DataError(f"{path} cannot be read: {error}", expected="CSV with a header line, or Parquet") from error
    raise DataError(f"{path} ends in {path.suffix!r}.", expected=".csv or .parquet")


def _shared_key(left: pa.Table, left_path: Path, right: pa.Table, right_path: Path) -> str:
    """The column that names each image in both files."""
    shared = [key for key in KEYS if key in left.column_names and key in right.column_names]
    if not shared:
        raise DataError(
            f"{left_path} and {right_path} share neither an id nor a path column.",
            expected="a column id or path in both, to tell which rows belong together",
        )
    # images with equal content may share an id; their paths still tell them apart
    for key in shared:
        if _is_unique(left[key]) and _is_unique(right[key]):
            return key
    table, path = (left, left_path) if not _is_unique(left[key]) else (right, right_path)
    names = pc.value_counts(table[key])
    twice = names.field("values").filter(pc.greater(names.field("counts"), 1))
    raise DataError(
        f"{path} lists {len(twice):,} images more than once{_examples(twice)}; "
        f"{table[key].null_count:,} rows have no {key}.",
        expected=f"a {key} in every row, each once",
    )


def _is_unique(column: pa.ChunkedArray) -> bool:
    return column.null_count == 0 and pc.count_distinct(column).as_py() == len(column)


def _rows_of(left: pa.Table, right: pa.Table, key: str) -> Int[Array, " left"]:
    """For each row of `left` the row of `right` that names the same image, -1 where there is none."""
    place = pc.index_in(left[key].cast(pa.string()), value_set=right[key].cast(pa.string()).combine_chunks())
    return np.asarray(pc.fill_null(place, -1).to_numpy(), dtype=np.int64)


def _refuse_missing(table: pa.Table, is_missing: Mask, key: str, path: Path, other: Path) -> None:
    if is_missing.any():
        examples = _examples(table[key].filter(pa.array(is_missing)))
        raise DataError(
            f"{int(is_missing.sum()):,} of {len(is_missing):,} images in {path} are not in {other}{examples}.",
            expected="the same images in both files",
            advice=f"compare how the two files write the {key}, or evaluate only the images in both",
        )


def _examples(names: pa.Array | pa.ChunkedArray) -> str:
    return f", e.g. {', '.join(str(name) for name in names[:_N_EXAMPLES].to_pylist())}" if len(names) else ""


def _classes(table: pa.Table, path: Path) -> tuple[Labels, dict[int, str]]:
    """The class of each row and the names of the classes, as far as they have any."""
    names = [name for name in ("label", "class_name") if name in table.column_names]
    labels, values = _codes(table, names[0] if names else "label", path)
    if values is None and "class_name" in names:
        found, first = np.unique(labels, return_index=True)
        named = table["class_name"].take(pa.array(first)).to_pylist()
        return labels, {int(label): name for label, name in zip(found, named, strict=True) if name is not None}
    return labels, dict(enumerate(values or []))


def _codes(table: pa.Table, name: str, path: Path) -> tuple[Labels, list[str] | None]:
    """Integers as they are; text as its place in the alphabet, with the texts in that order."""
    column = _column(table, name, path)
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy(), dtype=np.int64), None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values, codes = np.unique(np.asarray(column.to_pylist(), dtype=object), return_inverse=True)
        return codes.astype(np.int64), [str(value) for value in values]
    raise DataError(f"Column {name} of {path} holds {column.type}.", expected="whole numbers or text")


def _numbers(table: pa.Table, name: str, path: Path) -> Float[Array, " rows"]:
    column = _column(table, name, path)
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise DataError(f"Column {name} of {path} holds {column.type}.", expected="numbers")
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _flags(table: pa.Table, name: str, path: Path) -> Mask:
    column = _column(table, name, path)
    if pa.types.is_integer(column.type) and set(pc.unique(column).to_pylist()) <= {0, 1}:
        column = column.cast(pa.bool_())
    if not pa.types.is_boolean(column.type):
        raise DataError(f"Column {name} of {path} holds {column.type}.", expected="true or false, 1 or 0")
    return np.asarray(column.to_numpy(), dtype=bool)


def _column(table: pa.Table, name: str, path: Path) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise DataError(f"{path} has no column {name}.", expected=f"columns id or path, and {name}")
    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise DataError(f"Column {name} of {path} is empty in {column.null_count:,} of {len(column):,} rows.")
    return column
