"""Names of classes: one Unicode form wherever they are read, and those that look alike."""

from __future__ import annotations

import json
import unicodedata
import zipfile

import pyarrow as pa
import pytest

from justright.data import from_dataset, open_images, read_class_split
from justright.data.class_names import look_alikes, nfc, nfc_column, visible
from justright.data.columns import NAME

MAC, OTHER = "mu\u0308we", "m\u00fcwe"


def test_the_forms_differ_and_become_one():
    assert MAC != OTHER
    assert nfc(MAC) == nfc(OTHER) == OTHER


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), NAME])
def test_a_column_keeps_its_type_and_has_each_name_once(kind):
    for column in (pa.array([MAC, OTHER, None]).cast(kind), pa.chunked_array([[MAC], [OTHER, None]]).cast(kind)):
        found = nfc_column(column)
        assert found.to_pylist() == [OTHER, OTHER, None]
        assert found.type == kind
        assert len(found.unique()) == 2
    assert nfc_column(pa.chunked_array([], kind)).to_pylist() == []


def test_a_folder_of_a_mac_and_one_of_another_system_are_one_class(make_tree):
    images = open_images(
        make_tree({f"vögel/{MAC}": 2, unicodedata.normalize("NFD", "vögel") + f"/{OTHER}": 1, "emu": 1})
    )
    assert images.classes == {0: "emu", 1: f"vögel/{OTHER}"}
    assert images.hierarchy == {0: (), 1: ("vögel",)}
    assert images.labels.tolist() == [0, 1, 1, 1]
    assert sum(MAC in path for path in images.paths) == 2, "paths stay as they are"
    assert [images.image(row).size for row in range(4)]


def test_a_zip_with_both_forms_has_one_class(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        for name in (MAC, OTHER):
            made.writestr(f"{name}/{len(name)}.png", b"")
    assert open_images(tmp_path / "a.zip").classes == {0: OTHER}


@pytest.mark.parametrize("header", ["path,class_name", "path,label"])
def test_a_table_with_both_forms_has_one_class(tmp_path, header):
    (tmp_path / "list.csv").write_text(f"{header}\n1.png,{MAC}\n2.png,{OTHER}\n3.png,emu\n", encoding="utf-8")
    images = open_images(tmp_path / "list.csv")
    assert images.classes == {0: "emu", 1: OTHER}
    assert images.labels.tolist() == [1, 1, 0]


def test_one_label_may_have_its_name_in_both_forms_and_data_sets_too(tmp_path):
    rows = f"path,label,class_name,dataset\n1.png,4,{MAC},{MAC}\n2.png,4,{OTHER},{OTHER}\n"
    (tmp_path / "list.csv").write_text(rows, encoding="utf-8")
    images = open_images(tmp_path / "list.csv")
    assert images.classes == {4: OTHER}
    assert images.datasets == [OTHER]


def test_a_saved_set_of_an_older_version_is_read_so_too(make_tree, tmp_path):
    images = open_images(make_tree({OTHER: 1}))
    index = images.table.schema.get_field_index("class_name")
    old = type(images)(images.table.set_column(index, "class_name", pa.array([MAC]).cast(NAME)), images.readers)
    old.save(tmp_path / "set.parquet")
    assert open_images(tmp_path / "set.parquet").classes == {0: OTHER}


def test_objects_and_splits_by_name_are_read_so_too(make_tree, tmp_path):
    class Folder:
        samples, classes, root = [("a.png", 0)], [MAC], "."

    assert from_dataset(Folder(), "set").classes == {0: OTHER}
    split = {"known_classes": [MAC], "unknown_classes": {"Easy": ["emu"]}}
    (tmp_path / "split.json").write_text(json.dumps(split))
    assert read_class_split(tmp_path / "split.json", {0: "emu", 1: OTHER}).old == (1,)


def test_names_that_differ_by_case_or_by_what_does_not_show_look_alike():
    same = ["cat", "Cat", "ca\u00adt", "cat\u200b", "cat ", "\ufeffcat"]
    assert {visible(name) for name in same} == {"cat"}
    assert look_alikes([*same, "dog", "a b", "a\u00a0b", "a_b"]) == [sorted(same), ["a b", "a\u00a0b"]]
    assert look_alikes(["cat", "cat", "car"]) == []
