from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.drawn_files import put

from justright.data.catalog import DATA_SETS
from justright.utils.errors import DataError, MissingDataError

LISTS = {
    "classes.txt": "1 001.Black_footed_Albatross\n2 002.Laysan_Albatross\n3 003.Indigo_Bunting\n",
    "images.txt": "1 003.Indigo_Bunting/c.jpg\n2 001.Black_footed_Albatross/a.jpg\n"
    "3 002.Laysan_Albatross/b.jpg\n4 001.Black_footed_Albatross/d.jpg\n",
    # not in the order of images.txt: the id decides
    "image_class_labels.txt": "4 1\n3 2\n2 1\n1 3\n",
    "train_test_split.txt": "1 1\n2 0\n3 1\n4 1\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    base = tmp_path / "CUB_200_2011"
    base.mkdir()
    for name, text in LISTS.items():
        (base / name).write_text(text)
    for line in LISTS["images.txt"].splitlines():
        put(base / "images" / line.split()[1], b"")
    return tmp_path


def test_labels_are_official_numbers_minus_one(root: Path) -> None:
    images = DATA_SETS["cub"].load(root)
    assert images.labels.tolist() == [2, 0, 1, 0]
    assert images.paths[0] == "003.Indigo_Bunting/c.jpg"
    assert images.table["split"].to_pylist() == ["train", "test", "train", "train"]
    assert images.classes == {0: "001.Black_footed_Albatross", 1: "002.Laysan_Albatross", 2: "003.Indigo_Bunting"}
    assert images.datasets == ["cub"]


def test_super_category_is_the_last_word_of_the_name(root: Path) -> None:
    assert DATA_SETS["cub"].load(root).hierarchy == {0: ("Albatross",), 1: ("Albatross",), 2: ("Bunting",)}


def test_root_may_be_the_unpacked_folder(root: Path) -> None:
    assert len(DATA_SETS["cub"].load(root / "CUB_200_2011")) == 4


def test_images_are_read_from_their_source(root: Path) -> None:
    (root / "CUB_200_2011/images/003.Indigo_Bunting/c.jpg").write_bytes(b"pixels")
    assert DATA_SETS["cub"].load(root).encoded(0) == b"pixels"


@pytest.mark.parametrize("name", [*LISTS, "images/002.Laysan_Albatross/b.jpg"])
def test_missing_file_error_has_layout_and_url(root: Path, name: str) -> None:
    missing = root / "CUB_200_2011" / name
    missing.unlink()
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["cub"].load(root)
    assert str(missing) in str(error.value)
    assert "train_test_split.txt" in str(error.value)
    assert "vision.caltech.edu" in str(error.value)


def test_missing_root_is_reported_alike(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"classes\.txt does not exist"):
        DATA_SETS["cub"].load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("image_class_labels.txt", "1 3\n2 1\n3 2\n4 7\n"),
        ("image_class_labels.txt", "1 3\n2 1\n3 2\n4 0\n"),
        ("image_class_labels.txt", "1 3\n2 1\n3 two\n4 1\n"),
        ("image_class_labels.txt", "1 3\n2 1\n3 2\n"),
        ("train_test_split.txt", "1 1\n2\n3 1\n4 1\n"),
        ("images.txt", ""),
        ("images.txt", "\udcff\udcfe"),
    ],
)
def test_damaged_list_is_an_error(root: Path, name: str, text: str) -> None:
    (root / "CUB_200_2011" / name).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DataError, match="damaged"):
        DATA_SETS["cub"].load(root)


def test_folder_in_place_of_a_list_is_no_traceback(root: Path) -> None:
    (root / "CUB_200_2011/images.txt").unlink()
    (root / "CUB_200_2011/images.txt").mkdir()
    with pytest.raises(DataError, match=r"images\.txt cannot be read"):
        DATA_SETS["cub"].load(root)
