from __future__ import annotations

import pytest

from justright.data import open_images
from justright.review.export import MAX_BYTES, safe_folders, safe_part, write_class_folders
from justright.utils.errors import DataError


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("gull", "gull"),
        ("..", "_"),
        (".", "_"),
        (".hidden", "_hidden"),
        ("", "_"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("a\x00b", "a_b"),
        ('a:b*c?"<>|', "a_b_c_____"),
        ("back\\slash", "back_slash"),
        ("ends. ", "ends"),
    ],
)
def test_invalid_file_names_are_replaced(name, safe):
    assert safe_part(name) == safe


def test_cut_names_keep_their_ending():
    cut = safe_part("ß" * 200 + ".png")
    assert len(cut.encode()) <= MAX_BYTES
    assert cut.endswith("ß.png")


def test_class_folders_stay_inside_and_are_unique():
    names = ["../../etc", "a/../b", "/root", "Gull", "gull", "GULL", "a:b", "a_b"]
    folders = safe_folders(names)
    assert len({folder.casefold() for folder in folders.values()}) == len(names)
    for folder in folders.values():
        assert not folder.startswith("/")
        assert ".." not in folder.split("/")


@pytest.mark.parametrize("is_copy", [False, True])
def test_class_folders_are_read_back_as_the_same_classes(make_tree, tmp_path, is_copy):
    images = open_images(make_tree({"cats": 3, "dogs/small": 2}))
    write_class_folders(images, tmp_path / "out", is_copy=is_copy)
    again = open_images(tmp_path / "out")
    assert again.classes == images.classes
    assert sorted(again.with_ids().ids) == sorted(images.with_ids().ids)
    assert all(file.is_symlink() != is_copy for file in (tmp_path / "out").rglob("*.png"))


def test_files_of_one_name_do_not_overwrite_each_other(make_tree, tmp_path):
    root = make_tree({"one": 2, "two": 2})
    (tmp_path / "list.csv").write_text(
        "path,class_name\n" + "".join(f"photos/{c}/{n}.png,same\n" for c in ("one", "two") for n in (0, 1))
    )
    images = open_images(tmp_path / "list.csv")
    write_class_folders(images, tmp_path / "out")
    assert len(list((tmp_path / "out" / "same").iterdir())) == 4
    assert root.is_dir()


def test_non_empty_folder_is_not_overwritten(make_tree, tmp_path):
    images = open_images(make_tree({"cats": 1}))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="not empty"):
        write_class_folders(images, tmp_path / "out")
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_unreadable_image_leaves_no_partial_export(make_tree, tmp_path):
    root = make_tree({"cats": 2})
    images = open_images(root)
    (root / "cats" / "1.png").unlink()
    with pytest.raises(DataError):
        write_class_folders(images, tmp_path / "out", is_copy=True)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["photos"]
