from __future__ import annotations

import pyarrow as pa
import pytest

from justright.data.checked_columns import path_values, saved_columns, text_column, whole_labels
from justright.data.columns import COLUMNS
from justright.utils.errors import DataError


def text(*values):
    return pa.chunked_array([pa.array(values, pa.string())])


def test_every_plain_type_is_read_as_text():
    for values in (["1"], [1], [1.0], pa.array([b"1"]), pa.array(["1"]).dictionary_encode()):
        assert text_column(pa.table({"x": values}), "x", "t").to_pylist() == ["1"]


def test_text_that_a_file_only_claims_to_hold_is_refused():
    claimed = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    with pytest.raises(DataError, match="t: column x holds string that cannot be read"):
        text_column(pa.table({"x": claimed}), "x", "t")


def test_every_row_has_a_path():
    with pytest.raises(DataError, match="t: row 3 has no path"):
        path_values(pa.table({"path": ["a", None]}), "path", "t")


def test_labels_are_whole_numbers_or_names():
    numbers, same = whole_labels(text("007", None, "2"), "t")
    assert numbers.tolist() == [7, -1, 2]
    assert same.to_pylist() == ["007", None, "2"]
    assert whole_labels(text("7", "wren"), "t") is None
    with pytest.raises(DataError, match=r"label 7\.5 in row 2"):
        whole_labels(text("7.5"), "t")


def test_a_saved_table_gets_the_columns_and_types_of_an_image_set():
    found = saved_columns(
        pa.table({"path": ["a"], "source": ["folder:."], "note": [1], "superclass": [2.0]}), "x/t.csv"
    )
    assert found.column_names == [*COLUMNS, "superclass"]
    assert {name: found.schema.field(name).type for name in COLUMNS} == COLUMNS
    assert found.to_pylist()[0] | {"id": 0} == {
        "id": 0,
        "source": "folder:.",
        "path": "a",
        "label": -1,
        "class_name": None,
        "dataset": "t",
        "split": None,
        "superclass": "2",
    }


def test_a_saved_table_without_paths_is_refused():
    with pytest.raises(DataError, match="t has no column path"):
        saved_columns(pa.table({"source": ["folder:."]}), "t")
