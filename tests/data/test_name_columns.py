from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from justright.data.image_set import NAME
from justright.data.name_columns import name_column, write_csv


def test_each_row_gets_the_name_at_its_place():
    column = name_column(["goose", None, "duck"], np.array([2, 0, 1, 2]))
    assert column.type == NAME
    assert column.to_pylist() == ["duck", "goose", None, "duck"]


def test_the_same_rows_make_the_same_column_whatever_other_names_there_are():
    few = name_column(["goose", "duck"], np.array([1, 0, 1]))
    many = name_column(["swan", "duck", "goose", "duck"], np.array([3, 2, 1]))
    assert few.equals(many)
    assert few.dictionary.to_pylist() == ["duck", "goose"]


def test_a_table_with_names_is_written_as_text(tmp_path):
    column = name_column(["Größe, in cm", None], np.array([0, 1, 0]))
    write_csv(pa.table({"row": [1, 2, 3], "name": column}), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines() == [
        '"row","name"',
        '1,"Größe, in cm"',
        "2,",
        '3,"Größe, in cm"',
    ]


def test_a_name_that_is_missing_can_be_written_as_parquet(tmp_path):
    table = pa.table({"name": name_column([None, "goose"], np.array([0, 1]))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["name"].to_pylist() == [None, "goose"]
