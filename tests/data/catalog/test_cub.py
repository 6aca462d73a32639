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
    ("name", "text", "message"),
    [
        ("image_class_labels.txt", "1 3\n2 1\n3 2\n4 7\n", r"image_class_labels\.txt, line 4: 7"),
        ("image_class_labels.txt", "1 3\n2 1\n3 two\n4 1\n", r"image_class_labels\.txt, line 3: two"),
        ("image_class_labels.txt", "1 3\n2 1\n3 2\n4 1\n9 1\n", r"image_class_labels\.txt, line 5: 9 is not in images"),
        ("image_class_labels.txt", "1 3\n2 1\n3 2\n", r"images\.txt, line 4: 4 is not in .*image_class_labels\.txt"),
        ("train_test_split.txt", "1 1\n2\n3 1\n4 1\n", r"train_test_split\.txt, line 2: '2'"),
        ("train_test_split.txt", "1 1\n2 0\n3 1\n4 2\n", r"train_test_split\.txt, line 4: 2"),
        ("images.txt", "", r"images\.txt, line 1"),
        ("images.txt", "1 a.jpg\n1 b.jpg\n", r"images\.txt, line 2: 1 is listed twice"),
        ("classes.txt", "1 a\n3 b\n2 c\n", r"classes\.txt: classes are not numbered in order"),
    ],
)
def test_damaged_list_is_reported_with_its_line(root: Path, name: str, text: str, message: str) -> None:
    (root / "CUB_200_2011" / name).write_text(text)
    with pytest.raises(DataError, match=message):
        DATA_SETS["cub"].load(root)


def test_list_that_is_no_text_is_reported(root: Path) -> None:
    (root / "CUB_200_2011/images.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"images\.txt is not text"):
        DATA_SETS["cub"].load(root)


def test_folder_in_place_of_a_list_is_no_traceback(root: Path) -> None:
    (root / "CUB_200_2011/images.txt").unlink()
    (root / "CUB_200_2011/images.txt").mkdir()
    with pytest.raises(DataError, match=r"images\.txt cannot be read"):
        DATA_SETS["cub"].load(root)
