from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.drawn_files import put

from justright.data.catalog import DATA_SETS
from justright.utils.errors import DataError, MissingDataError

LISTS = {
    "classes.txt": "0 Birds\n1 Ducks, Geese, and Swans\n22 Grebes\n100 Common Eider\n295 Eared Grebe\n"
    "817 Common Eider (Adult male)\n",
    "hierarchy.txt": "1 0\n22 0\n100 1\n295 22\n817 100\n",
    "images.txt": "b-1 0817/b1.jpg\na-2 0295/a2.jpg\nc-3 0817/c3.jpg\n",
    "image_class_labels.txt": "a-2 295\nb-1 817\nc-3 817\n",
    "train_test_split.txt": "a-2 0\nb-1 1\nc-3 1\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    base = tmp_path / "nabirds"
    base.mkdir()
    for name, text in LISTS.items():
        (base / name).write_text(text)
    for line in LISTS["images.txt"].splitlines():
        put(base / "images" / line.split()[1], b"")
    return tmp_path


def test_labels_count_classes_with_images(root: Path) -> None:
    images = DATA_SETS["nabirds"].load(root)
    assert images.classes == {0: "Eared Grebe", 1: "Common Eider (Adult male)"}
    assert images.labels.tolist() == [1, 0, 1]
    assert images.paths == ["0817/b1.jpg", "0295/a2.jpg", "0817/c3.jpg"]
    assert images.table["split"].to_pylist() == ["train", "test", "train"]


def test_numbers_are_ordered_as_numbers(root: Path) -> None:
    base = root / "nabirds"
    (base / "image_class_labels.txt").write_text("a-2 100\nb-1 22\nc-3 817\n")
    assert DATA_SETS["nabirds"].load(base).labels.tolist() == [0, 1, 2]


def test_hierarchy_holds_the_ancestors_without_the_root(root: Path) -> None:
    images = DATA_SETS["nabirds"].load(root)
    assert images.hierarchy == {0: ("Grebes",), 1: ("Ducks, Geese, and Swans", "Common Eider")}
    # the coarse level is filled for every class, the fine one only where the tree is deep
    assert images.table["superclass"].to_pylist() == ["Common Eider", None, "Common Eider"]


@pytest.mark.parametrize("name", [*LISTS, "images/0295/a2.jpg"])
def test_missing_file_error_has_layout_and_url(root: Path, name: str) -> None:
    (root / "nabirds" / name).unlink()
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["nabirds"].load(root)
    assert f"{root / 'nabirds' / name} does not exist" in str(error.value)
    assert "hierarchy.txt" in str(error.value)
    assert "allaboutbirds.org" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("image_class_labels.txt", "a-2 295\nb-1 4\nc-3 817\n"),
        ("image_class_labels.txt", "a-2 295\nb-1 817\n"),
        ("hierarchy.txt", "295 22\n22 7\n7 0\n817 100\n"),
    ],
)
def test_list_that_does_not_fit_the_others_is_an_error(root: Path, name: str, text: str) -> None:
    (root / "nabirds" / name).write_text(text)
    with pytest.raises(DataError, match="damaged or do not belong together"):
        DATA_SETS["nabirds"].load(root)
