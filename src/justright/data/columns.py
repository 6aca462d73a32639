"""The columns of an image table: their names and types, class names, and validation of tables from files.

Class names are compared in one Unicode form: macOS writes ü as u and a combining mark (NFD), most others as one
character (NFC). Names are stored as NFC.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from jaxtyping import Int

from justright.utils.errors import DataError
from justright.utils.types import UNLABELED, Array


def nfc(name: str) -> str:
    """The name in the Unicode form of all class names."""
    return unicodedata.normalize("NFC", name)


def nfc_column(names: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column with its names in NFC; its type is kept.

    Arrow's own function composes nothing in release 16. Each distinct name is converted once.
    """
    if isinstance(names, pa.ChunkedArray):
        return pa.chunked_array([nfc_column(chunk) for chunk in names.chunks], names.type)
    encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    before: list[str | None] = encoded.dictionary.to_pylist()
    after = [None if name is None else nfc(name) for name in before]
    if after == before:
        return names
    return pa.array(after, encoded.dictionary.type).take(encoded.indices).cast(names.type)  # two forms become one entry


def visible(name: str) -> str:
    """The name without case and without invisible characters: zero-width ones, soft hyphens, odd spaces."""
    shown = "".join(c for c in name if unicodedata.category(c) not in ("Cf", "Cc") and not "\ufe00" <= c <= "\ufe0f")
    return nfc(" ".join(shown.split()).casefold())


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ only by case or by invisible characters."""
    groups: dict[str, set[str]] = defaultdict(set)
    for name in names:
        groups[visible(name)].add(name)
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


NAME = pa.dictionary(pa.int32(), pa.string())  # repeated names cost four bytes each
COLUMNS = {
    "id": pa.string(),
    "source": NAME,
    "path": pa.string(),
    "label": pa.int32(),
    "class_name": NAME,
    "dataset": NAME,
    "split": NAME,
}
CONTENT = "content"  # optional column: the content id that an image had when a run read it, null if unknown
SAVED_BYTES = "bytes"  # column and source of images that only a saved table holds
NAMES = ("class_name", "dataset")  # columns of names that people give; super-categories too
SUPERCLASS = "superclass"  # the column of the finest super-category; `superclass2`, `superclass3`, ... are coarser


def superclass_column(depth: int) -> str:
    """The column of the super-category `depth` levels above the class."""
    return SUPERCLASS if depth == 1 else f"{SUPERCLASS}{depth}"


def superclass_columns(table: pa.Table) -> list[str]:
    """The columns of super-categories that a table has, fine to coarse."""
    return list(takewhile(lambda name: name in table.column_names, map(superclass_column, count(1))))


def levels_of(chains: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Super-categories by level, fine to coarse, from the chain above each class, coarse to fine.

    A class with a shorter chain has no name at the finest levels. Example: the chains ("birds", "gulls") and ("fish",)
    make the levels ["gulls", None] and ["birds", "fish"].
    """
    depths = reversed(range(max(map(len, chains), default=0)))
    return [[chain[depth] if depth < len(chain) else None for chain in chains] for depth in depths]


def names_column(names: Sequence[str | None], indices: Int[Array, " rows"]) -> pa.Array:
    """The name at each index, dictionary-encoded.

    The dictionary holds the names that occur, in order of appearance, so that equal rows make equal files.
    """
    return pa.array(names, pa.string()).take(pa.array(indices)).cast(NAME)


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table as CSV; dictionary-encoded columns as text."""
    plain = [column.cast(pa.string()) if column.type == NAME else column for column in table.columns]
    pyarrow.csv.write_csv(pa.table(plain, names=table.column_names), path)


def column(name: str, values: Any, n: int) -> pa.Array | pa.ChunkedArray:
    """The values with the type of this column. None stands for `n` unknown values: -1 for labels, nulls otherwise."""
    kind = COLUMNS.get(name, NAME)
    if values is None:
        return pa.repeat(pa.scalar(UNLABELED, kind), n) if name == "label" else pa.nulls(n, kind)
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.array(values)
    if len(values) != n:
        raise DataError(f"column {name} has {len(values):,} entries", expected=f"{n:,}, one per image")
    return values.cast(kind) if values.type != kind else values


def with_columns(table: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The table with other values in these columns."""
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    return table


def rename_sources(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Rename the sources of a table; sources without rows are dropped."""
    source = table["source"].cast(pa.string()).combine_chunks().dictionary_encode()
    renamed = pa.array([names.get(name) for name in source.dictionary.to_pylist()], pa.string())
    return with_columns(table, {"source": pa.DictionaryArray.from_arrays(source.indices, renamed)})


MAX_LABEL = np.iinfo(np.int32).max
LABELS = f"whole numbers from 0 to {MAX_LABEL:,}; empty or -1 where unknown"
LABELS_ADVICE = "put numbers that are names into a column class_name, without a column label"


def text_column(table: pa.Table, name: str, origin: str) -> pa.ChunkedArray:
    """A column as text; rejects nested types, invalid text and repeated columns."""
    if (n := table.column_names.count(name)) > 1:
        raise DataError(f"{origin} has {n} columns named {name}", expected="one", advice="rename or remove the others")
    values = table[name]
    try:
        values.validate(full=True)  # a file may declare any bytes as text
        if pa.types.is_nested(values.type):
            raise ValueError("not plain")
        text = values.cast(pa.string())
        text.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        problem = f"{origin}: column {name} holds {values.type} that cannot be read as text"
        raise DataError(problem, expected="text or numbers") from error
    return text


def path_values(table: pa.Table, name: str, origin: str) -> pa.ChunkedArray:
    """A column of paths without nulls."""
    paths = text_column(table, name, origin)
    is_bad = np.asarray(pc.fill_null(pc.match_substring(paths, "\0"), True))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        problem = "no" if paths[row].as_py() is None else f"no readable ({paths[row].as_py()!r})"
        raise DataError(f"{origin}: row {row + 2} has {problem} {name}", expected="a path in every row")
    return paths


def whole_labels(label: pa.ChunkedArray, origin: str) -> tuple[Array, pa.ChunkedArray] | None:
    """Numeric labels, -1 where missing, and the same as text; None if the labels are names.

    Other tools write 1.0 for 1 if a label is missing. A column of numbers that are not all whole (1.5, NaN) is
    rejected: these are neither labels nor names.
    """
    try:
        numbers = np.asarray(pc.fill_null(label.cast(pa.float64()), float(UNLABELED)))
    except pa.ArrowInvalid:
        return None
    is_bad = ~((numbers >= UNLABELED) & (numbers <= MAX_LABEL) & (numbers == np.floor(numbers)))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        problem = f"{origin}: label {label[row].as_py()} in row {row + 2}"
        raise DataError(problem, expected=LABELS, advice=LABELS_ADVICE)
    return numbers.astype(np.int64), pc.replace_substring_regex(label, r"\.0*$", "")
