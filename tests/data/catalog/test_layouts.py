"""Folders and lists of a data set as images, labels and parts; what is damaged is named with its line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import savemat

from justright.data.catalog.layouts import (
    Listing,
    assemble,
    check_present,
    class_folders,
    first_present,
    images_in,
    inside,
    missing,
    read_lines,
    read_mat,
    train_then_test,
    whole_numbers,
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


def listing(tmp_path, name: str, text: str) -> Listing:
    (tmp_path / name).write_text(text)
    return Listing(tmp_path / name)


def test_lines_lose_a_byte_order_mark_and_empty_lines_at_the_end(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\ntwo\n\n")
    assert read_lines(tmp_path / "a.txt") == ["one", "two"]
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"b\.txt is not text"):
        read_lines(tmp_path / "b.txt")


def test_line_is_cut_at_its_first_space(tmp_path):
    found = listing(tmp_path, "a.txt", "1 black footed albatross\n2 gull\n")
    assert found == {"1": "black footed albatross", "2": "gull"}


@pytest.mark.parametrize(("text", "message"), [("1 a\n2\n", "line 2: '2'"), ("1 a\n1 b\n", "line 2: 1 is listed")])
def test_list_rejects_missing_values_and_repeated_keys(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        listing(tmp_path, "a.txt", text)


def test_values_are_matched_by_key(tmp_path):
    parts, images = listing(tmp_path, "parts", "3 1\n1 0\n2 0\n"), listing(tmp_path, "images", "1 x\n2 y\n3 z\n")
    assert parts.numbers(images, 0, 1).tolist() == [0, 0, 1]
    with pytest.raises(DataError, match="images, line 3: 3 is not in"):
        listing(tmp_path, "few", "1 0\n2 0\n").in_order_of(images)
    with pytest.raises(DataError, match="many, line 4: 4 is not in images"):
        listing(tmp_path, "many", "1 0\n2 0\n3 0\n4 0\n").in_order_of(images)


@pytest.mark.parametrize("value", ["7", "-1", "1.5", "x", None, float("nan")])
def test_values_out_of_bounds_are_reported(value):
    with pytest.raises(DataError, match=rf"row 1: {value}"):
        whole_numbers([2, value], 0, 6, lambda row: f"row {row}")


def test_matlab_variables_have_one_axis_even_with_one_entry(tmp_path):
    savemat(tmp_path / "a.mat", {"labels": np.array([[3]]), "files": np.array(["x"], dtype=object)})
    labels, files = read_mat(tmp_path / "a.mat", "labels", "files")
    assert (labels.tolist(), files.tolist()) == ([3], ["x"])


def test_matlab_file_that_lacks_something_is_rejected(tmp_path):
    savemat(tmp_path / "a.mat", {"labels": np.empty((0,))})
    with pytest.raises(DataError, match="labels is empty"):
        read_mat(tmp_path / "a.mat", "labels")
    with pytest.raises(DataError, match="no variable names"):
        read_mat(tmp_path / "a.mat", "names")
    (tmp_path / "b.mat").write_bytes(b"no matlab file" * 20)
    with pytest.raises(DataError, match="cannot be read"):
        read_mat(tmp_path / "b.mat", "labels")
    with pytest.raises(FileNotFoundError):
        read_mat(tmp_path / "c.mat", "labels")
