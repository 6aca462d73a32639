"""The columns of a table of images: their names and types, and how they are filled and replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
from jaxtyping import Int

from justright.utils.errors import DataError
from justright.utils.types import UNLABELED, Array

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
CONTENT = "content"  # an optional column: the content id that a file had when a run saw it, null where nothing is known
NAMES = ("class_name", "dataset")  # what people name; super-categories too
SUPERCLASS = "superclass"  # the column of the finest super-category; `superclass2`, `superclass3`, ... are coarser


def superclass_column(depth: int) -> str:
    """The column of the super-category `depth` levels above the class."""
    return SUPERCLASS if depth == 1 else f"{SUPERCLASS}{depth}"


def superclass_columns(table: pa.Table) -> list[str]:
    """The columns of super-categories that a table has, fine to coarse."""
    return list(takewhile(table.column_names.__contains__, map(superclass_column, count(1))))


def levels_of(chains: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Super-categories level by level, fine to coarse, from the chain above each class, coarse to fine.

    A class that lies less deep than others has no name at the finest levels.
    """
    depths = reversed(range(max(map(len, chains), default=0)))
    return [[chain[depth] if depth < len(chain) else None for chain in chains] for depth in depths]


def names_column(names: Sequence[str | None], places: Int[Array, " rows"]) -> pa.Array:
    """For each row the name at its place in `names`, such as that of its class: four bytes a row.

    The column holds the names that occur, once each, in order of appearance: the same rows make the same file.
    """
    return pa.array(names, pa.string()).take(pa.array(places)).cast(NAME)


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table whose columns of names CSV cannot hold as they are."""
    plain = [column.cast(pa.string()) if column.type == NAME else column for column in table.columns]
    pyarrow.csv.write_csv(pa.table(plain, names=table.column_names), path)


def column(name: str, values: Any, n: int) -> pa.Array | pa.ChunkedArray:
    """`n` values with the type that this column has. None for what is not known: -1 for labels, nulls for the rest."""
    kind = COLUMNS.get(name, NAME)
    if values is None:
        return pa.repeat(pa.scalar(UNLABELED, kind), n) if name == "label" else pa.nulls(n, kind)
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.array(values)
    if len(values) != n:
        raise DataError(f"column {name} has {len(values):,} entries", expected=f"{n:,}, one an image")
    return values.cast(kind) if values.type != kind else values


def with_columns(table: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The table with other values in columns that it has."""
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    return table


def rename_sources(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The table with other names for its sources; one that no row uses any more is left out."""
    source = table["source"].cast(pa.string()).combine_chunks().dictionary_encode()
    renamed = pa.array([names.get(name) for name in source.dictionary.to_pylist()], pa.string())
    return with_columns(table, {"source": pa.DictionaryArray.from_arrays(source.indices, renamed)})
