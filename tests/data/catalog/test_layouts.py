"""Folders and lists of a data set as images, labels and parts; errors name what is missing or damaged."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import savemat

from justright.data.catalog.layouts import (
    assemble,
    check_present,
    class_folders,
    first_present,
    images_in,
    inside,
    missing,
    read_list,
    read_mat,
    train_then_test,
)
from justright.utils.errors import DataError


@pytest.fixture
def root(tmp_path):
    for name in ("train/b/2.jpg", "train/b/10.jpg", "train/b/notes.txt", "train/a/1.jpg", "train/.cache/x.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_missing_file_error_has_its_path(tmp_path):
    assert missing(tmp_path / "x").filename == str(tmp_path / "x")


def test_archive_folder_or_its_parent_is_accepted(root):
    assert inside(root, "train") == inside(root / "train", "train") == root / "train"


def test_first_existing_name_is_used(root):
    assert first_present(root, "Train", "train") == root / "train"
    with pytest.raises(FileNotFoundError, match="Images"):
        first_present(root, "Images", "images")


def test_class_folders_are_sorted_and_hidden_ones_left_out(root):
    assert class_folders(root / "train") == ["a", "b"]
    with pytest.raises(FileNotFoundError):
        class_folders(root / "train" / "a")


def test_labels_follow_the_order_of_the_folders(root):
    paths, labels = images_in(root, "train", ["b", "a"], first_label=5)
    assert paths == ["train/b/10.jpg", "train/b/2.jpg", "train/a/1.jpg"]
    assert labels.tolist() == [5, 5, 6]


def test_first_missing_path_is_reported(root):
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


def test_train_comes_before_test(root):
    images = train_then_test(
        root, "set", [(["x"], np.array([0])), (["y"], np.array([1]))], [(["z"], np.array([1]))], ["a", "b"]
    )
    assert images.paths == ["x", "y", "z"]
    assert images.of_split("train").labels.tolist() == [0, 1]


def test_list_is_read_in_the_order_of_the_file(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf2 black footed albatross\n1 gull \n\n")
    assert list(read_list(tmp_path / "a.txt").items()) == [("2", "black footed albatross"), ("1", "gull")]


def test_list_rejects_a_line_without_a_value(tmp_path):
    (tmp_path / "a.txt").write_text("1 a\n2\n")
    with pytest.raises(DataError, match=r"a\.txt is damaged"):
        read_list(tmp_path / "a.txt")


def test_matlab_variables_have_one_axis_even_with_one_entry(tmp_path):
    savemat(tmp_path / "a.mat", {"labels": np.array([[3]]), "files": np.array(["x"], dtype=object)})
    labels, files = read_mat(tmp_path / "a.mat", "labels", "files")
    assert (labels.tolist(), files.tolist()) == ([3], ["x"])


def test_matlab_file_that_is_damaged_or_lacks_a_variable_is_rejected(tmp_path):
    savemat(tmp_path / "a.mat", {"labels": np.zeros(3)})
    (tmp_path / "b.mat").write_bytes(b"no matlab file" * 20)
    for name in ("a.mat", "b.mat"):
        with pytest.raises(DataError, match=f"{name} cannot be read"):
            read_mat(tmp_path / name, "names")
    with pytest.raises(FileNotFoundError):
        read_mat(tmp_path / "c.mat", "names")
