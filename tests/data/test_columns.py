"""Columns of image tables, class names and validation."""

from __future__ import annotations

import json
import unicodedata
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from justright.data import from_dataset, open_images, read_class_split
from justright.data.columns import (
    COLUMNS,
    NAME,
    column,
    levels_of,
    look_alikes,
    names_column,
    nfc,
    nfc_column,
    path_values,
    rename_sources,
    superclass_columns,
    text_column,
    visible,
    whole_labels,
    with_columns,
    write_csv,
)
from justright.utils.errors import BadImageError, DataError

MAC, OTHER = "mu\u0308we", "m\u00fcwe"


def test_forms_differ_and_become_one():
    assert MAC != OTHER
    assert nfc(MAC) == nfc(OTHER) == OTHER


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), NAME])
def test_column_keeps_its_type_and_has_each_name_once(kind):
    for names in (pa.array([MAC, OTHER, None]).cast(kind), pa.chunked_array([[MAC], [OTHER, None]]).cast(kind)):
        found = nfc_column(names)
        assert found.to_pylist() == [OTHER, OTHER, None]
        assert found.type == kind
        assert len(found.unique()) == 2
    assert nfc_column(pa.chunked_array([], kind)).to_pylist() == []


def test_folders_in_two_unicode_forms_are_one_class(make_tree):
    images = open_images(
        make_tree({f"vögel/{MAC}": 2, unicodedata.normalize("NFD", "vögel") + f"/{OTHER}": 1, "emu": 1})
    )
    assert images.classes == {0: "emu", 1: f"vögel/{OTHER}"}
    assert images.hierarchy == {0: (), 1: ("vögel",)}
    assert images.labels.tolist() == [0, 1, 1, 1]
    assert sum(MAC in path for path in images.paths) == 2, "paths stay as they are"
    assert [images.image(row).size for row in range(4)]


def test_zip_with_both_forms_has_one_class(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        for name in (MAC, OTHER):
            made.writestr(f"{name}/{len(name)}.png", b"")
    assert open_images(tmp_path / "a.zip").classes == {0: OTHER}


@pytest.mark.parametrize("header", ["path,class_name", "path,label"])
def test_table_with_both_forms_has_one_class(tmp_path, header):
    (tmp_path / "list.csv").write_text(f"{header}\n1.png,{MAC}\n2.png,{OTHER}\n3.png,emu\n", encoding="utf-8")
    images = open_images(tmp_path / "list.csv")
    assert images.classes == {0: "emu", 1: OTHER}
    assert images.labels.tolist() == [1, 1, 0]


def test_label_and_data_set_names_in_two_unicode_forms_are_equal(tmp_path):
    rows = f"path,label,class_name,dataset\n1.png,4,{MAC},{MAC}\n2.png,4,{OTHER},{OTHER}\n"
    (tmp_path / "list.csv").write_text(rows, encoding="utf-8")
    images = open_images(tmp_path / "list.csv")
    assert images.classes == {4: OTHER}
    assert images.datasets == [OTHER]


def test_saved_set_of_an_older_version_is_read(make_tree, tmp_path):
    images = open_images(make_tree({OTHER: 1}))
    index = images.table.schema.get_field_index("class_name")
    old = type(images)(images.table.set_column(index, "class_name", pa.array([MAC]).cast(NAME)), images.readers)
    old.save(tmp_path / "set.parquet")
    assert open_images(tmp_path / "set.parquet").classes == {0: OTHER}


def test_objects_and_splits_normalize_names(make_tree, tmp_path):
    class Folder:
        samples, classes, root = [("a.png", 0)], [MAC], "."

    assert from_dataset(Folder(), "set").classes == {0: OTHER}
    split = {"known_classes": [MAC], "unknown_classes": {"Easy": ["emu"]}}
    (tmp_path / "split.json").write_text(json.dumps(split))
    assert read_class_split(tmp_path / "split.json", {0: "emu", 1: OTHER}).old == (1,)


def test_names_that_differ_invisibly_look_alike():
    same = ["cat", "Cat", "ca\u00adt", "cat\u200b", "cat ", "\ufeffcat"]
    assert {visible(name) for name in same} == {"cat"}
    assert look_alikes([*same, "dog", "a b", "a\u00a0b", "a_b"]) == [sorted(same), ["a b", "a\u00a0b"]]
    assert look_alikes(["cat", "cat", "car"]) == []


def test_each_row_gets_the_name_at_its_place():
    column = names_column(["goose", None, "duck"], np.array([2, 0, 1, 2]))
    assert column.type == NAME
    assert column.to_pylist() == ["duck", "goose", None, "duck"]


def test_equal_rows_make_equal_columns():
    few = names_column(["goose", "duck"], np.array([1, 0, 1]))
    many = names_column(["swan", "duck", "goose", "duck"], np.array([3, 2, 1]))
    assert few.equals(many)
    assert few.dictionary.to_pylist() == ["duck", "goose"]


def test_table_with_names_is_written_as_text(tmp_path):
    column = names_column(["Größe, in cm", None], np.array([0, 1, 0]))
    write_csv(pa.table({"row": [1, 2, 3], "name": column}), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines() == [
        '"row","name"',
        '1,"Größe, in cm"',
        "2,",
        '3,"Größe, in cm"',
    ]


def test_name_that_is_missing_can_be_written_as_parquet(tmp_path):
    table = pa.table({"name": names_column([None, "goose"], np.array([0, 1]))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["name"].to_pylist() == [None, "goose"]


def test_column_has_its_type_and_length():
    assert column("label", [1, 2], 2).type == pa.int32()
    assert column("superclass2", ["x"], 1).type == NAME
    assert column("id", None, 2).to_pylist() == [None, None]
    with pytest.raises(DataError, match="column split has 1 entries"):
        column("split", ["train"], 2)


def test_shallow_class_has_no_finest_levels():
    assert levels_of([["birds", "gulls"], ["fish"], []]) == [["gulls", None, None], ["birds", "fish", None]]
    assert levels_of([]) == []


def test_super_categories_are_listed_fine_to_coarse():
    table = pa.table({name: [1] for name in ("superclass2", "superclass4", "superclass", "label")})
    assert superclass_columns(table) == ["superclass", "superclass2"]


def test_replaced_columns_stay_in_their_places():
    table = with_columns(pa.table({"a": [1], "b": [2], "c": [3]}), {"b": pa.array(["x"])})
    assert table.to_pydict() == {"a": [1], "b": ["x"], "c": [3]}
    assert table.column_names == ["a", "b", "c"]


def test_sources_are_renamed_by_name():
    table = pa.table({"source": names_column(["x", "y"], np.array([1, 0, 1]))})
    assert rename_sources(table, {"x": "1", "y": "2"})["source"].to_pylist() == ["2", "1", "2"]


def test_unused_sources_are_not_saved(tmp_path):
    table = pa.table({"source": names_column(["x", "y"], np.array([0, 1, 1]))}).slice(1)
    pq.write_table(rename_sources(table, {"y": "2"}), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["source"].to_pylist() == ["2", "2"]


def text(*values):
    return pa.chunked_array([pa.array(values, pa.string())])


def test_every_plain_type_is_read_as_text():
    for values in (["1"], [1], [1.0], pa.array([b"1"]), pa.array(["1"]).dictionary_encode()):
        assert text_column(pa.table({"x": values}), "x", "t").to_pylist() == ["1"]


def test_invalid_utf8_is_rejected():
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


def test_saved_table_gets_the_columns_and_types_of_an_image_set(tmp_path):
    saved = pa.table({"path": ["a"], "source": ["folder:."], "note": [1], "superclass": [2.0]})
    pq.write_table(saved, tmp_path / "t.parquet")
    found = open_images(tmp_path / "t.parquet").table
    assert found.column_names == [*COLUMNS, "superclass"]
    assert {name: found.schema.field(name).type for name in COLUMNS} == COLUMNS
    assert found.to_pylist()[0] | {"id": 0} == {
        "id": 0,
        "source": f"folder:{tmp_path}",
        "path": "a",
        "label": -1,
        "class_name": None,
        "dataset": "t",
        "split": None,
        "superclass": "2",
    }


def test_saved_table_without_paths_or_a_source_is_rejected(tmp_path):
    pq.write_table(pa.table({"source": ["folder:."]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="has the columns source"):
        open_images(tmp_path / "t.parquet")
    pq.write_table(pa.table({"source": ["folder:.", None], "path": ["a", "b"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="a row has no source"):
        open_images(tmp_path / "t.parquet")


@pytest.mark.parametrize("path", ["1", "-1", "x", "\u00b2"])
def test_saved_image_with_a_wrong_row_is_a_bad_image(tmp_path, path):
    pq.write_table(pa.table({"source": ["bytes"], "path": [path], "bytes": [b"x"]}), tmp_path / "t.parquet")
    with pytest.raises(BadImageError, match="no such image"):
        open_images(tmp_path / "t.parquet").image(0)
