from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from justright.data import open_images, open_manifest
from justright.data.manifest import read_csv
from justright.utils.errors import DataError
from justright.utils.types import UNLABELED


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_paths_are_relative_to_the_manifest(make_tree, tmp_path):
    root = make_tree({"a": 1})
    images = open_manifest(write(root / "list.csv", "path,label\na/0.png,4\n"))
    assert images.labels.tolist() == [4]
    assert images.classes == {4: "4"}
    assert images.image(0).size == (16, 12)


def test_text_labels_are_numbered_alphabetically(tmp_path):
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
    ("text", "message"),
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
def test_bad_manifest_is_rejected_with_the_reason(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        open_manifest(write(tmp_path / "list.csv", text))


def test_saved_set_with_unknown_source_is_rejected(tmp_path):
    pq.write_table(pa.table({"source": ["http://x"], "path": ["1.png"], "label": [0]}), tmp_path / "s.parquet")
    with pytest.raises(DataError, match="names the source 'http://x'"):
        open_images(tmp_path / "s.parquet")


def test_damaged_saved_set_is_rejected(make_tree, tmp_path):
    open_images(make_tree({"wren": 3, "crow": 2})).with_ids().save(tmp_path / "set.parquet")
    good, whole = (tmp_path / "set.parquet").read_bytes(), open_images(tmp_path / "set.parquet").table
    n_refused = 0
    for place in range(0, len(good), 23):
        (tmp_path / "set.parquet").write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
        try:
            assert open_images(tmp_path / "set.parquet").table.to_pydict() == whole.to_pydict(), place
        except DataError as error:
            n_refused += "set.parquet cannot be read" in str(error)
    assert n_refused > 50


def test_csv_is_whole_although_the_reader_of_the_header_reads_on(monkeypatch):
    opened = []

    def header_reader(file):
        opened.append(file)
        return open_csv(file)

    def read_late(file, **options):
        opened[0].read(20)  # as the thread of the header reader does at any time
        return read_whole(file, **options)

    open_csv, read_whole = pa_csv.open_csv, pa_csv.read_csv
    monkeypatch.setattr(pa_csv, "open_csv", header_reader)
    monkeypatch.setattr(pa_csv, "read_csv", read_late)
    rows = "".join(f"{number}.png,{number % 7}\n" for number in range(1000))
    assert read_csv(f"path,label\n{rows}".encode()).num_rows == 1000
