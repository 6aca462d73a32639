from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from justright.data.catalog import DATA_SETS
from justright.utils.errors import DataError, MissingDataError

# a part of the official order, which is not alphabetical: Integra comes after TSX
NAMES = [
    "AM General Hummer SUV 2000",
    "Acura TSX Sedan 2012",
    "Acura Integra Type R 2001",
    "Ram C/V Cargo Van Minivan 2012",
]
FIELDS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")


def write_annotations(file: Path, rows: list[tuple[int, str]], fields: tuple[str, ...] = FIELDS) -> None:
    """A 1 x n struct array of 1 x 1 integers and strings, as in the devkit."""
    annotations = np.empty((1, len(rows)), dtype=[(field, object) for field in fields])
    for column, (number, name) in enumerate(rows):
        entry = {field: np.array([[30]], np.uint16) for field in fields}
        entry |= {"class": np.array([[number]], np.uint8), "fname": np.array([name])}
        annotations[0, column] = tuple(entry[field] for field in fields)
    savemat(file, {"annotations": annotations}, do_compression=True)


def write_meta(file: Path, names: list[str] = NAMES) -> None:
    """A 1 x n cell array of strings."""
    cells = np.empty((1, len(names)), dtype=object)
    cells[0] = [np.array([name]) for name in names]
    file.parent.mkdir(parents=True, exist_ok=True)
    savemat(file, {"class_names": cells}, do_compression=True)


def touch(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


@pytest.fixture
def devkit(tmp_path: Path) -> Path:
    write_meta(tmp_path / "devkit/cars_meta.mat")
    write_annotations(tmp_path / "devkit/cars_train_annos.mat", [(4, "00001.jpg"), (1, "00002.jpg"), (3, "00003.jpg")])
    write_annotations(tmp_path / "devkit/cars_test_annos_withlabels.mat", [(2, "00001.jpg")])
    touch(*(tmp_path / "cars_train" / f"0000{i}.jpg" for i in (1, 2, 3)), tmp_path / "cars_test/00001.jpg")
    return tmp_path


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    (tmp_path / "names.csv").write_text("".join(f"{name}\n" for name in NAMES))
    for name in NAMES:
        folder = name.replace("/", "-")
        touch(*(tmp_path / "car_data/car_data" / part / folder / "00001.jpg" for part in ("train", "test")))
    return tmp_path


def test_devkit_labels_are_positions_in_cars_meta(devkit: Path) -> None:
    images = DATA_SETS["cars"].load(devkit)
    assert images.labels.tolist() == [3, 0, 2, 1]
    assert images.paths == [
        "cars_train/00001.jpg",
        "cars_train/00002.jpg",
        "cars_train/00003.jpg",
        "cars_test/00001.jpg",
    ]
    assert images.table["split"].to_pylist() == ["train", "train", "train", "test"]
    assert images.classes == dict(enumerate(NAMES))


def test_test_labels_may_be_beside_the_devkit(devkit: Path) -> None:
    name = "cars_test_annos_withlabels.mat"
    (devkit / "devkit" / name).rename(devkit / name)
    assert len(DATA_SETS["cars"].load(devkit)) == 4


def test_single_annotation_is_read_like_many(devkit: Path) -> None:
    write_annotations(devkit / "devkit/cars_train_annos.mat", [(2, "00003.jpg")])
    assert DATA_SETS["cars"].load(devkit).of_split("train").labels.tolist() == [1]


def test_class_folders_are_labeled_by_name_and_not_by_the_alphabet(folders: Path) -> None:
    images = DATA_SETS["cars"].load(folders)
    train = images.of_split("train")
    assert [path.split("/")[1] for path in train.paths] == sorted(name.replace("/", "-") for name in NAMES)
    assert train.labels.tolist() == [0, 2, 1, 3]
    assert images.classes == dict(enumerate(NAMES))
    assert len(images.of_split("test")) == 4


@pytest.mark.parametrize("folder", ["Ram C_V Cargo Van Minivan 2012", "Ram CV Cargo Van Minivan 2012"])
@pytest.mark.parametrize("place", ["", "car_data"])
def test_class_folders_are_found_in_every_usual_place_and_spelling(tmp_path: Path, folder: str, place: str) -> None:
    write_meta(tmp_path / "cars_meta.mat")
    touch(*(tmp_path / place / part / folder / "1.jpg" for part in ("train", "test")))
    assert DATA_SETS["cars"].load(tmp_path).labels.tolist() == [3, 3]


def test_class_folders_without_class_order_are_rejected(folders: Path) -> None:
    (folders / "names.csv").unlink()
    with pytest.raises(MissingDataError, match=r"cars_meta\.mat does not exist(.|\n)*names\.csv"):
        DATA_SETS["cars"].load(folders)


def test_unknown_class_folder_is_reported(folders: Path) -> None:
    touch(folders / "car_data/car_data/train/Trabant 601 1964/1.jpg")
    with pytest.raises(DataError, match="trabant6011964"):
        DATA_SETS["cars"].load(folders)


def test_empty_class_folder_is_reported(folders: Path) -> None:
    (folders / "car_data/car_data/test" / NAMES[0] / "00001.jpg").unlink()
    with pytest.raises(MissingDataError, match="AM General Hummer SUV 2000"):
        DATA_SETS["cars"].load(folders)


@pytest.mark.parametrize(
    "name",
    [
        "devkit/cars_meta.mat",
        "devkit/cars_train_annos.mat",
        "devkit/cars_test_annos_withlabels.mat",
        "cars_train/00002.jpg",
        "cars_test/00001.jpg",
    ],
)
def test_missing_file_error_has_layout_and_url(devkit: Path, name: str) -> None:
    (devkit / name).unlink()
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["cars"].load(devkit)
    assert f"{devkit / name} does not exist" in str(error.value)
    assert "car_data/car_data/" in str(error.value)
    assert "jkrause/cars" in str(error.value)


@pytest.mark.parametrize("number", [0, 5])
def test_class_out_of_range_is_an_error(devkit: Path, number: int) -> None:
    write_annotations(devkit / "devkit/cars_train_annos.mat", [(1, "00001.jpg"), (number, "00002.jpg")])
    with pytest.raises(DataError, match=r"Stanford Cars: files below .* are damaged"):
        DATA_SETS["cars"].load(devkit)


def test_test_annotations_without_labels_are_an_error(devkit: Path) -> None:
    fields = tuple(field for field in FIELDS if field != "class")
    write_annotations(devkit / "devkit/cars_test_annos_withlabels.mat", [(1, "00001.jpg")], fields)
    with pytest.raises(DataError, match="no field of name class"):
        DATA_SETS["cars"].load(devkit)


def test_file_that_is_no_matlab_file_is_reported(devkit: Path) -> None:
    (devkit / "devkit/cars_meta.mat").write_bytes(b"<html>moved</html>" * 20)
    with pytest.raises(DataError, match=r"cars_meta\.mat cannot be read"):
        DATA_SETS["cars"].load(devkit)
