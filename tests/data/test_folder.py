"""Trees of folders as image sets."""

from __future__ import annotations

import os

import pytest

from justright.data import open_folder
from justright.utils.errors import DataError
from justright.utils.types import UNLABELED


def test_a_tree_of_folders_is_sorted_by_class_then_file(make_tree):
    images = open_folder(make_tree({"dogs": 2, "cats": 3}))
    assert images.paths == ["cats/0.png", "cats/1.png", "cats/2.png", "dogs/0.png", "dogs/1.png"]
    assert images.labels.tolist() == [0, 0, 0, 1, 1]
    assert images.classes == {0: "cats", 1: "dogs"}
    assert images.datasets == ["photos"]


def test_folders_above_a_class_are_its_super_categories_from_coarse_to_fine(make_tree):
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


def test_a_file_name_that_is_not_utf8_is_named(make_tree):
    root = make_tree({"a": 1})
    (root / "a" / "0.png").rename(os.fsdecode(os.fsencode(root) + b"/a/caf\xe9.png"))
    with pytest.raises(DataError, match="is not UTF-8"):
        open_folder(root)
