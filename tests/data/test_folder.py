"""Images in folders and zips, and images written as files."""

from __future__ import annotations

import os
import struct
import zipfile

import pytest
from PIL import Image

from justright.data import glyph_set, open_archive, open_folder, open_images
from justright.data.folder import unrecognized, write_tree
from justright.report.page_images import contact_sheet
from justright.utils.errors import DataError
from justright.utils.types import UNLABELED


def test_tree_of_folders_is_sorted_by_class_then_file(make_tree):
    images = open_folder(make_tree({"dogs": 2, "cats": 3}))
    assert images.paths == ["cats/0.png", "cats/1.png", "cats/2.png", "dogs/0.png", "dogs/1.png"]
    assert images.labels.tolist() == [0, 0, 0, 1, 1]
    assert images.classes == {0: "cats", 1: "dogs"}
    assert images.datasets == ["photos"]


def test_folders_above_a_class_are_super_categories(make_tree):
    images = open_folder(make_tree({"birds/gulls/herring": 1, "birds/owl": 1, "fish": 1}))
    assert images.classes == {0: "birds/gulls/herring", 1: "birds/owl", 2: "fish"}
    assert images.hierarchy == {0: ("birds", "gulls"), 1: ("birds",), 2: ()}


def test_images_beside_the_class_folders_have_no_label(make_tree):
    images = open_folder(make_tree({"cats": 1, ".": 2}))
    assert sorted(images.labels.tolist()) == [UNLABELED, UNLABELED, 0]
    assert images.classes == {0: "cats"}


def test_links_are_followed_but_circles_are_not(make_tree):
    root = make_tree({"cats": 1})
    (root / "cats" / "again").symlink_to(root, target_is_directory=True)
    (root / "linked").symlink_to(make_tree({"x": 2}, name="elsewhere") / "x", target_is_directory=True)
    assert open_folder(root).classes == {0: "cats", 1: "linked"}


def test_file_name_that_is_not_utf8_is_reported(make_tree):
    root = make_tree({"a": 1})
    (root / "a" / "0.png").rename(os.fsdecode(os.fsencode(root) + b"/a/caf\xe9.png"))
    with pytest.raises(DataError, match="is not UTF-8"):
        open_folder(root)


def zipped(tmp_path, members):
    archive = tmp_path / "set.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for name, data in members.items():
            opened.writestr(name, data)
    return archive


@pytest.mark.parametrize("folder", ["", "images/"])
def test_zip_with_labels_inside_opens_without_unpacking(make_tree, tmp_path, folder):
    pixels = (make_tree({"a": 1}) / "a" / "0.png").read_bytes()
    archive = zipped(tmp_path, {f"{folder}0/x.png": pixels, "labels.csv": "file,label\n0/x.png,wren\n"})
    images = open_images(archive)
    assert images.paths == [f"{folder}0/x.png"]
    assert images.classes == {0: "wren"}
    assert images.image(0).size == (16, 12)
    images.save(tmp_path / "out" / "set.parquet")
    assert open_images(tmp_path / "out" / "set.parquet").image(0).size == (16, 12)


def test_zip_of_class_folders_needs_no_labels(tmp_path):
    images = open_archive(zipped(tmp_path, {"b/1.png": b"", "a/2.png": b"", "a/readme.txt": b""}))
    assert images.paths == ["a/2.png", "b/1.png"]
    assert images.classes == {0: "a", 1: "b"}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"labels.csv": "path,label\nnot_there.png,1\n"}, "is not in set.zip"),
        ({"a.csv": "path\n", "b.csv": "path\n"}, "holds 2 CSV files"),
        ({"readme.txt": "hello"}, "holds no images"),
    ],
)
def test_bad_zip_is_rejected_with_the_reason(tmp_path, members, message):
    with pytest.raises(DataError, match=message):
        open_archive(zipped(tmp_path, members))


def test_non_zip_is_rejected(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"no zip at all")
    with pytest.raises(DataError, match="cannot be opened"):
        open_archive(tmp_path / "x.zip")


def test_zipped_table_above_the_limit_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("justright.data.readers.MAX_FILE_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("labels.csv", "path,label\n" + "x.png,1\n" * 200)
    with pytest.raises(DataError, match=r"labels\.csv in .*bomb\.zip cannot be read: .*too large, 1,611 bytes"):
        open_archive(tmp_path / "bomb.zip")


def test_zipped_table_larger_than_its_header_is_rejected(tmp_path):
    archive = tmp_path / "liar.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("labels.csv", "path,label\n" + "x.png,1\n" * 100_000)
    data = bytearray(archive.read_bytes())
    struct.pack_into("<L", data, data.index(b"PK\x01\x02") + 24, 40)  # the size that the list of members tells
    archive.write_bytes(data)
    with pytest.raises(DataError, match=r"labels\.csv in .*liar\.zip cannot be read"):
        open_archive(archive)


def test_files_added_by_macos_are_skipped(tmp_path):
    members = {"a/1.png": b"", "__MACOSX/a/._1.png": b"", "a/._1.png": b"", ".hidden/2.png": b"", "a/notes.txt": b""}
    archive = zipped(tmp_path, members)
    assert open_archive(archive).paths == ["a/1.png"]
    assert unrecognized(archive) == ["a/notes.txt"]


def test_written_tree_opens_as_the_same_classes_and_pixels(tmp_path):
    images = glyph_set(per_class=25, scripts=["digits"])
    assert write_tree(images, tmp_path / "out") == 250
    again = open_folder(tmp_path / "out")
    assert [name.rpartition("/")[2] for name in again.classes.values()] == sorted(images.classes.values())
    assert set(again.hierarchy.values()) == set(images.hierarchy.values())
    row = again.paths.index(f"{images.paths[30]}.png")
    assert again.image(row).tobytes() == images.image(30).tobytes()


def test_second_run_writes_only_what_is_missing(tmp_path):
    images = glyph_set(per_class=2, scripts=["digits"])
    write_tree(images, tmp_path)
    lost = next(tmp_path.rglob("*.png"))
    lost.unlink()
    assert write_tree(images, tmp_path) == 1
    assert lost.exists()
    assert not list(tmp_path.rglob(".*"))


def test_contact_sheet_fills_rows_from_the_left():
    red, blue = (Image.new("RGB", (6, 4), color) for color in ("red", "blue"))
    sheet = contact_sheet([red, blue, red], columns=2, gap=1)
    assert sheet.size == (13, 9)
    assert [sheet.getpixel(at) for at in ((0, 0), (7, 0), (0, 5), (7, 5))] == [
        (255, 0, 0, 255),
        (0, 0, 255, 255),
        (255, 0, 0, 255),
        (255, 255, 255, 0),
    ]
