"""Columns of a table of images."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from justright.data.columns import (
    NAME,
    column,
    levels_of,
    names_column,
    rename_sources,
    superclass_columns,
    with_columns,
    write_csv,
)
from justright.utils.errors import DataError


def test_each_row_gets_the_name_at_its_place():
    column = names_column(["goose", None, "duck"], np.array([2, 0, 1, 2]))
    assert column.type == NAME
    assert column.to_pylist() == ["duck", "goose", None, "duck"]


def test_the_same_rows_make_the_same_column_whatever_other_names_there_are():
    few = names_column(["goose", "duck"], np.array([1, 0, 1]))
    many = names_column(["swan", "duck", "goose", "duck"], np.array([3, 2, 1]))
    assert few.equals(many)
    assert few.dictionary.to_pylist() == ["duck", "goose"]


def test_a_table_with_names_is_written_as_text(tmp_path):
    column = names_column(["Größe, in cm", None], np.array([0, 1, 0]))
    write_csv(pa.table({"row": [1, 2, 3], "name": column}), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines() == [
        '"row","name"',
        '1,"Größe, in cm"',
        "2,",
        '3,"Größe, in cm"',
    ]


def test_a_name_that_is_missing_can_be_written_as_parquet(tmp_path):
    table = pa.table({"name": names_column([None, "goose"], np.array([0, 1]))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["name"].to_pylist() == [None, "goose"]


def test_a_column_has_its_type_and_length():
    assert column("label", [1, 2], 2).type == pa.int32()
    assert column("superclass2", ["x"], 1).type == NAME
    assert column("id", None, 2).to_pylist() == [None, None]
    with pytest.raises(DataError, match="column split has 1 entries"):
        column("split", ["train"], 2)


def test_a_class_that_lies_less_deep_has_no_name_at_the_finest_levels():
    assert levels_of([["birds", "gulls"], ["fish"], []]) == [["gulls", None, None], ["birds", "fish", None]]
    assert levels_of([]) == []


def test_super_categories_are_listed_fine_to_coarse_as_far_as_they_go():
    table = pa.table({name: [1] for name in ("superclass2", "superclass4", "superclass", "label")})
    assert superclass_columns(table) == ["superclass", "superclass2"]


def test_replaced_columns_stay_in_their_places():
    table = with_columns(pa.table({"a": [1], "b": [2], "c": [3]}), {"b": pa.array(["x"])})
    assert table.to_pydict() == {"a": [1], "b": ["x"], "c": [3]}
    assert table.column_names == ["a", "b", "c"]


def test_sources_are_renamed_by_name():
    table = pa.table({"source": names_column(["x", "y"], np.array([1, 0, 1]))})
    assert rename_sources(table, {"x": "1", "y": "2"})["source"].to_pylist() == ["2", "1", "2"]


def test_a_source_that_no_row_uses_any_more_is_no_hindrance(tmp_path):
    table = pa.table({"source": names_column(["x", "y"], np.array([0, 1, 1]))}).slice(1)
    pq.write_table(rename_sources(table, {"y": "2"}), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["source"].to_pylist() == ["2", "2"]
