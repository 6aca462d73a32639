from __future__ import annotations

from pathlib import Path

import pytest

from justright.data.catalog import DATA_SETS
from justright.errors import DataError, MissingDataError

CUB = {
    "classes.txt": "1 001.Black_footed_Albatross\n2 002.Laysan_Albatross\n3 003.Indigo_Bunting\n",
    "images.txt": "1 003.Indigo_Bunting/c.jpg\n2 001.Black_footed_Albatross/a.jpg\n"
    "3 002.Laysan_Albatross/b.jpg\n4 001.Black_footed_Albatross/d.jpg\n",
    # not in the order of images.txt: the id decides
    "image_class_labels.txt": "4 1\n3 2\n2 1\n1 3\n",
    "train_test_split.txt": "1 1\n2 0\n3 1\n4 1\n",
}
NABIRDS = {
    "classes.txt": "0 Birds\n1 Ducks, Geese, and Swans\n22 Grebes\n100 Common Eider\n295 Eared Grebe\n"
    "817 Common Eider (Adult male)\n",
    "hierarchy.txt": "1 0\n22 0\n100 1\n295 22\n817 100\n",
    "images.txt": "b-1 0817/b1.jpg\na-2 0295/a2.jpg\nc-3 0817/c3.jpg\n",
    "image_class_labels.txt": "a-2 295\nb-1 817\nc-3 817\n",
    "train_test_split.txt": "a-2 0\nb-1 1\nc-3 1\n",
}


def put_lists(base: Path, lists: dict[str, str]) -> None:
    base.mkdir()
    for name, text in lists.items():
        (base / name).write_text(text)
    for line in lists["images.txt"].splitlines():
        image = base / "images" / line.split()[1]
        image.parent.mkdir(parents=True, exist_ok=True)
        image.touch()


@pytest.fixture
def cub(tmp_path: Path) -> Path:
    put_lists(tmp_path / "CUB_200_2011", CUB)
    return tmp_path


@pytest.fixture
def nabirds(tmp_path: Path) -> Path:
    put_lists(tmp_path / "nabirds", NABIRDS)
    return tmp_path


def test_labels_are_official_numbers_minus_one_in_the_order_of_images_txt(cub: Path) -> None:
    images = DATA_SETS["cub"].load(cub)
    assert images.labels.tolist() == [2, 0, 1, 0]
    assert images.paths[0] == "003.Indigo_Bunting/c.jpg"
    assert images.table["split"].to_pylist() == ["train", "test", "train", "train"]
    assert images.classes == {0: "001.Black_footed_Albatross", 1: "002.Laysan_Albatross", 2: "003.Indigo_Bunting"}
    assert images.datasets == ["cub"]


def test_the_super_category_is_the_last_word_of_the_name(cub: Path) -> None:
    assert DATA_SETS["cub"].load(cub).hierarchy == {0: ("Albatross",), 1: ("Albatross",), 2: ("Bunting",)}


def test_the_root_may_be_the_unpacked_folder_itself(cub: Path) -> None:
    assert len(DATA_SETS["cub"].load(cub / "CUB_200_2011")) == 4


def test_an_image_is_found_where_the_row_says(cub: Path) -> None:
    (cub / "CUB_200_2011/images/003.Indigo_Bunting/c.jpg").write_bytes(b"pixels")
    assert DATA_SETS["cub"].load(cub).encoded(0) == b"pixels"


@pytest.mark.parametrize("name", [*CUB, "images/002.Laysan_Albatross/b.jpg"])
def test_a_missing_file_of_cub_is_named_with_the_layout_and_where_to_ask(cub: Path, name: str) -> None:
    missing = cub / "CUB_200_2011" / name
    missing.unlink()
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["cub"].load(cub)
    assert str(missing) in str(error.value)
    assert "train_test_split.txt" in str(error.value)
    assert "vision.caltech.edu" in str(error.value)


def test_a_root_that_is_not_there_is_told_alike(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"classes\.txt is not there"):
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
        ("images.txt", "1 a.jpg\n1 b.jpg\n", r"images\.txt, line 2: 1 stands there twice"),
        ("classes.txt", "1 a\n3 b\n2 c\n", r"classes\.txt: classes are not numbered in order"),
    ],
)
def test_a_damaged_list_of_cub_is_named_with_its_line(cub: Path, name: str, text: str, message: str) -> None:
    (cub / "CUB_200_2011" / name).write_text(text)
    with pytest.raises(DataError, match=message):
        DATA_SETS["cub"].load(cub)


def test_a_list_that_is_no_text_is_named(cub: Path) -> None:
    (cub / "CUB_200_2011/images.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"images\.txt is not text"):
        DATA_SETS["cub"].load(cub)


def test_a_folder_in_place_of_a_list_is_no_traceback(cub: Path) -> None:
    (cub / "CUB_200_2011/images.txt").unlink()
    (cub / "CUB_200_2011/images.txt").mkdir()
    with pytest.raises(DataError, match=r"images\.txt cannot be read"):
        DATA_SETS["cub"].load(cub)


def test_only_classes_with_images_are_counted_in_the_order_of_their_numbers(nabirds: Path) -> None:
    images = DATA_SETS["nabirds"].load(nabirds)
    assert images.classes == {0: "Eared Grebe", 1: "Common Eider (Adult male)"}
    assert images.labels.tolist() == [1, 0, 1]
    assert images.paths == ["0817/b1.jpg", "0295/a2.jpg", "0817/c3.jpg"]
    assert images.table["split"].to_pylist() == ["train", "test", "train"]


def test_numbers_are_ordered_as_numbers(nabirds: Path) -> None:
    base = nabirds / "nabirds"
    (base / "image_class_labels.txt").write_text("a-2 100\nb-1 22\nc-3 817\n")
    assert DATA_SETS["nabirds"].load(base).labels.tolist() == [0, 1, 2]


def test_the_hierarchy_holds_the_ancestors_without_the_root(nabirds: Path) -> None:
    images = DATA_SETS["nabirds"].load(nabirds)
    assert images.hierarchy == {0: ("Grebes",), 1: ("Ducks, Geese, and Swans", "Common Eider")}
    # the coarse level is filled for every class, the fine one only where the tree is deep
    assert images.table["superclass"].to_pylist() == ["Common Eider", None, "Common Eider"]


@pytest.mark.parametrize("name", [*NABIRDS, "images/0295/a2.jpg"])
def test_a_missing_file_of_nabirds_is_named_with_the_layout_and_where_to_ask(nabirds: Path, name: str) -> None:
    (nabirds / "nabirds" / name).unlink()
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["nabirds"].load(nabirds)
    assert f"{nabirds / 'nabirds' / name} is not there" in str(error.value)
    assert "hierarchy.txt" in str(error.value)
    assert "allaboutbirds.org" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("image_class_labels.txt", "a-2 295\nb-1 4\nc-3 817\n", r"image_class_labels\.txt, line 2: 4"),
        ("image_class_labels.txt", "a-2 295\nb-1 817\n", r"images\.txt, line 3: c-3 is not in"),
        ("hierarchy.txt", "295 22\n22 7\n817 100\n", r"hierarchy\.txt, line 2: 7"),
        ("hierarchy.txt", "295 22\n22 295\n817 100\n", r"hierarchy\.txt, line \d: \d+ is above itself"),
        ("classes.txt", "zero Birds\n295 Eared Grebe\n817 Common Eider\n", r"classes\.txt, line 1: zero"),
        ("train_test_split.txt", "a-2 0\nb-1 yes\nc-3 1\n", r"train_test_split\.txt, line 2: yes"),
    ],
)
def test_a_damaged_list_of_nabirds_is_named_with_its_line(nabirds: Path, name: str, text: str, message: str) -> None:
    (nabirds / "nabirds" / name).write_text(text)
    with pytest.raises(DataError, match=message):
        DATA_SETS["nabirds"].load(nabirds)
