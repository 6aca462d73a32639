"""Columns of a table of images."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from justright.data.columns import (
    NAME,
    column,
    levels_of,
    names_column,
    rename_sources,
    superclass_columns,
    with_columns,
)
from justright.errors import DataError


def test_a_name_is_given_to_each_row_and_kept_once():
    names = names_column(["a", None, "b", "a"], np.array([2, 0, 1, 3]))
    assert names.type == NAME
    assert names.to_pylist() == ["b", "a", None, "a"]
    assert names.dictionary.to_pylist() == ["a", "b"]


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
