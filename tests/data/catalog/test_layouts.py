"""Folders of a data set as images, labels and parts."""

from __future__ import annotations

import numpy as np
import pytest

from justright.data.catalog.layouts import (
    assemble,
    check_present,
    class_folders,
    first_folder,
    images_in,
    inside,
    missing,
    train_then_test,
)


@pytest.fixture
def root(tmp_path):
    for name in ("train/b/2.jpg", "train/b/10.jpg", "train/b/notes.txt", "train/a/1.jpg", "train/.cache/x.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_missing_file_is_named_as_the_system_names_it(tmp_path):
    assert missing(tmp_path / "x").filename == str(tmp_path / "x")


def test_the_folder_of_the_archive_is_found_whether_it_or_its_parent_is_given(root):
    assert inside(root, "train") == inside(root / "train", "train") == root / "train"


def test_the_first_usual_name_that_is_there_is_taken(root):
    assert first_folder(root, "Train", "train") == "train"
    with pytest.raises(FileNotFoundError, match="Images"):
        first_folder(root, "Images", "images")


def test_class_folders_are_sorted_and_hidden_ones_left_out(root):
    assert class_folders(root / "train") == ["a", "b"]
    with pytest.raises(FileNotFoundError):
        class_folders(root / "train" / "a")


def test_images_are_labeled_by_the_order_of_their_folders_and_sorted_by_name(root):
    paths, labels = images_in(root, "train", ["b", "a"], first_label=5)
    assert paths == ["train/b/10.jpg", "train/b/2.jpg", "train/a/1.jpg"]
    assert labels.tolist() == [5, 5, 6]


def test_the_first_path_that_is_not_there_is_named(root):
    check_present(root, ["train/a/1.jpg"])
    with pytest.raises(FileNotFoundError, match=r"a/2\.jpg"):
        check_present(root, ["train/a/1.jpg", "train/a/2.jpg", "train/a/3.jpg"])


def test_names_of_classes_and_groups_are_given_to_every_image(root):
    images = assemble(
        root,
        "set",
        path=["x", "y", "z"],
        label=np.array([1, 0, 1]),
        is_train=np.array([True, False, False]),
        class_names=["a", "b"],
        superclasses=[["fine", None], ["coarse", "coarse"]],
    )
    assert images.table["class_name"].to_pylist() == ["b", "a", "b"]
    assert images.table["split"].to_pylist() == ["train", "test", "test"]
    assert images.hierarchy == {0: ("coarse", "fine"), 1: ("coarse",)}


def test_train_parts_stand_before_test_parts(root):
    images = train_then_test(
        root, "set", [(["x"], np.array([0])), (["y"], np.array([1]))], [(["z"], np.array([1]))], ["a", "b"]
    )
    assert images.paths == ["x", "y", "z"]
    assert images.of_split("train").labels.tolist() == [0, 1]
