from __future__ import annotations

import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from justright.data import open_archive, open_images, open_manifest
from justright.errors import DataError
from justright.types import UNLABELED


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_paths_are_relative_to_the_manifest(make_tree, tmp_path):
    root = make_tree({"a": 1})
    images = open_manifest(write(root / "list.csv", "path,label\na/0.png,4\n"))
    assert images.labels.tolist() == [4]
    assert images.classes == {4: "4"}
    assert images.image(0).size == (16, 12)
    elsewhere = write(tmp_path / "list.csv", "path\na/0.png\n")
    assert open_manifest(elsewhere, root=root).image(0).size == (16, 12)


def test_text_labels_are_numbered_by_the_alphabet_and_empty_ones_are_unlabeled(tmp_path):
    images = open_manifest(write(tmp_path / "list.csv", "file,label\n1.png,wren\n2.png,\n3.png,crow\n"))
    assert images.labels.tolist() == [1, UNLABELED, 0]
    assert images.classes == {0: "crow", 1: "wren"}


def test_numbers_keep_their_meaning_and_names_go_with_them(tmp_path):
    images = open_manifest(
        write(tmp_path / "list.csv", "path,label,class_name\n1.png,7,wren\n2.png,3,crow\n3.png,-1,\n")
    )
    assert images.labels.tolist() == [7, 3, UNLABELED]
    assert images.classes == {3: "crow", 7: "wren"}


def test_super_categories_in_a_manifest_go_from_fine_to_coarse(tmp_path):
    images = open_manifest(write(tmp_path / "l.csv", "path,label,superclass,superclass2\n1.png,wren,songbird,bird\n"))
    assert images.hierarchy == {0: ("bird", "songbird")}


def test_parquet_and_csv_give_the_same_set(tmp_path):
    csv = write(tmp_path / "l.csv", "path,label,dataset,split\n1.png,1,x,train\n2.png,0,y,test\n")
    pq.write_table(
        pa.table({"path": ["1.png", "2.png"], "label": [1, 0], "dataset": ["x", "y"], "split": ["train", "test"]}),
        tmp_path / "l.parquet",
    )
    from_csv, from_parquet = open_images(csv), open_images(tmp_path / "l.parquet")
    assert from_csv.table.to_pydict() == from_parquet.table.to_pydict()
    assert from_csv.datasets == ["x", "y"]
    assert from_csv.of_split("train").paths == ["1.png"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name,label\nx,1\n", "has the columns name, label"),
        ("path,label\n,1\n", "row 2 has no path"),
        ("path,label\nx,-4\n", "label -4"),
        ("path,label,class_name\na,1,wren\nb,1,crow\n", "label 1 has the class names 'wren' and 'crow'"),
        ("path,label,class_name\na,bird,wren\n", "holds text although"),
        ("path,label\na,1,2,3\n", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_a_bad_manifest_is_refused_with_the_reason(tmp_path, text, complaint):
    with pytest.raises(DataError, match=complaint):
        open_manifest(write(tmp_path / "list.csv", text))


def zipped(tmp_path, members):
    archive = tmp_path / "set.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for name, data in members.items():
            opened.writestr(name, data)
    return archive


@pytest.mark.parametrize("folder", ["", "images/"])
def test_a_zip_with_labels_inside_opens_without_unpacking(make_tree, tmp_path, folder):
    pixels = (make_tree({"a": 1}) / "a" / "0.png").read_bytes()
    archive = zipped(tmp_path, {f"{folder}0/x.png": pixels, "labels.csv": "file,label\n0/x.png,wren\n"})
    images = open_images(archive)
    assert images.paths == [f"{folder}0/x.png"]
    assert images.classes == {0: "wren"}
    assert images.image(0).size == (16, 12)
    images.save(tmp_path / "out" / "set.parquet")
    assert open_images(tmp_path / "out" / "set.parquet").image(0).size == (16, 12)


def test_a_zip_of_class_folders_needs_no_labels(tmp_path):
    images = open_archive(zipped(tmp_path, {"b/1.png": b"", "a/2.png": b"", "a/readme.txt": b""}))
    assert images.paths == ["a/2.png", "b/1.png"]
    assert images.classes == {0: "a", 1: "b"}


def test_labels_may_lie_beside_the_zip(tmp_path):
    archive = zipped(tmp_path, {"1.png": b""})
    labels = write(tmp_path / "truth.csv", "path,label\n1.png,wren\n")
    assert open_archive(archive, labels=labels).classes == {0: "wren"}


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"labels.csv": "path,label\nnot_there.png,1\n"}, "is not in set.zip"),
        ({"a.csv": "path\n", "b.csv": "path\n"}, "holds 2 CSV files"),
        ({"readme.txt": "hello"}, "no images in"),
    ],
)
def test_a_bad_zip_is_refused_with_the_reason(tmp_path, members, complaint):
    with pytest.raises(DataError, match=complaint):
        open_archive(zipped(tmp_path, members))


def test_what_is_no_zip_is_refused(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"no zip at all")
    with pytest.raises(DataError, match="cannot be opened"):
        open_archive(tmp_path / "x.zip")


def test_a_saved_set_from_elsewhere_cannot_name_a_strange_source(tmp_path):
    pq.write_table(pa.table({"source": ["http://x"], "path": ["1.png"], "label": [0]}), tmp_path / "s.parquet")
    with pytest.raises(DataError, match="names the source 'http://x'"):
        open_images(tmp_path / "s.parquet")
