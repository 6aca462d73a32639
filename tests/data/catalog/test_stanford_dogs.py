from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from tests.data.drawn_files import put

from justright.data import ClassSplit, graded
from justright.data.catalog import DATA_SETS
from justright.data.catalog.loaders import dog_kinds, kind_of
from justright.utils.errors import DataError, MissingDataError

TRAIN = [
    ("n02085782-Japanese_spaniel/n02085782_2.jpg", 2),
    ("n02085620-Chihuahua/n02085620_9.jpg", 1),
    ("n02116738-African_hunting_dog/n02116738_1.jpg", 120),
]
TEST = [("n02085620-Chihuahua/n02085620_5.jpg", 1)]


def write_list(file: Path, rows: list[tuple[str, int]]) -> None:
    """Two n x 1 cell arrays of strings and an n x 1 array of doubles, as in lists.tar."""
    files, annotations = np.empty((len(rows), 1), dtype=object), np.empty((len(rows), 1), dtype=object)
    files[:, 0] = [np.array([path]) for path, _ in rows]
    annotations[:, 0] = [np.array([path.removesuffix(".jpg")]) for path, _ in rows]
    labels = np.array([[number] for _, number in rows], dtype=np.float64)
    savemat(file, {"file_list": files, "annotation_list": annotations, "labels": labels}, do_compression=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_list(tmp_path / "train_list.mat", TRAIN)
    write_list(tmp_path / "test_list.mat", TEST)
    for path, _ in TRAIN + TEST:
        put(tmp_path / "Images" / path, b"")
    return tmp_path


def test_labels_are_official_numbers_minus_one(root: Path) -> None:
    images = DATA_SETS["dogs"].load(root)
    assert images.labels.tolist() == [1, 0, 119, 0]
    assert images.paths == [path for path, _ in TRAIN + TEST]
    assert images.table["split"].to_pylist() == ["train", "train", "train", "test"]


def test_class_name_is_the_folder_and_synset_gives_super_categories(root: Path) -> None:
    images = DATA_SETS["dogs"].load(root)
    assert images.classes == {
        0: "n02085620-Chihuahua",
        1: "n02085782-Japanese_spaniel",
        119: "n02116738-African_hunting_dog",
    }
    assert images.hierarchy[0] == ("toy dog",)
    assert images.hierarchy[119] == ("wild dog",)


def test_lists_may_be_in_a_folder(root: Path) -> None:
    (root / "lists").mkdir()
    for name in ("train_list.mat", "test_list.mat"):
        (root / name).rename(root / "lists" / name)
    assert len(DATA_SETS["dogs"].load(root)) == 4


@pytest.mark.parametrize("name", ["train_list.mat", "test_list.mat", f"Images/{TRAIN[0][0]}"])
def test_missing_file_error_has_layout_and_url(root: Path, name: str) -> None:
    (root / name).unlink()
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["dogs"].load(root)
    assert f"{root / name} does not exist" in str(error.value)
    assert "Images/n02085620-Chihuahua" in str(error.value)
    assert "ImageNetDogs" in str(error.value)


def test_missing_image_folder_is_reported(root: Path) -> None:
    (root / "Images").rename(root / "elsewhere")
    with pytest.raises(MissingDataError, match="Images does not exist"):
        DATA_SETS["dogs"].load(root)


@pytest.mark.parametrize("number", [0, 121])
def test_class_out_of_range_is_an_error(root: Path, number: int) -> None:
    write_list(root / "test_list.mat", [*TEST, (TEST[0][0], number)])
    with pytest.raises(DataError, match=r"Stanford Dogs: files below .* are damaged"):
        DATA_SETS["dogs"].load(root)


def test_lists_of_different_length_are_an_error(root: Path) -> None:
    savemat(root / "test_list.mat", {"file_list": np.array(["a", "b"], dtype=object), "labels": np.ones((3, 1))})
    put(root / "Images/a", b"")
    put(root / "Images/b", b"")
    with pytest.raises(DataError, match=r"Stanford Dogs: files below .* are damaged"):
        DATA_SETS["dogs"].load(root)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("n02099712-Labrador_retriever", ("hunting dog", "sporting dog", "retriever")),
        ("n02106662-German_shepherd", ("working dog", "shepherd dog")),
        ("n02110341-dalmatian", ()),
        ("something_else", ()),
    ],
)
def test_kind_of_a_breed(folder: str, kind: tuple[str, ...]) -> None:
    assert kind_of(folder) == kind


def test_ranges_of_synsets_do_not_overlap() -> None:
    bounds = [bound for of in dog_kinds() for bound in (of.start, of.stop - 1)]
    assert bounds == sorted(bounds)


def test_new_breeds_are_graded_by_their_kind() -> None:
    breeds = (
        "n02099712-Labrador_retriever",
        "n02099601-golden_retriever",
        "n02102318-cocker_spaniel",
        "n02112018-Pomeranian",
    )
    hierarchy = {label: kind_of(folder) for label, folder in enumerate(breeds)}
    groups = graded(ClassSplit((0,), {"": (1, 2, 3)}), hierarchy).groups
    assert groups == {"Similar": (1,), "Medium": (2,), "Dissimilar": (3,)}
