"""Columns of names that repeat: kept once each, and written as plain text where a file cannot do so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from jaxtyping import Int

from justright.data.image_set import NAME
from justright.types import Array


def name_column(names: Sequence[str | None], places: Int[Array, " rows"]) -> pa.Array:
    """For each row the name at its place in `names`, such as that of its class: four bytes a row.

    The column holds the names that occur, once each, in order of appearance: the same rows make the same file.
    """
    return pa.array(names, pa.string()).take(pa.array(places.astype(np.int64))).cast(NAME)


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table whose columns of names CSV cannot hold as they are."""
    plain = [column.cast(pa.string()) if column.type == NAME else column for column in table.columns]
    pyarrow.csv.write_csv(pa.table(plain, names=table.column_names), path)
