from __future__ import annotations

from pathlib import Path

import pytest

from justright.data.catalog import DATA_SETS
from justright.utils.errors import DataError, MissingDataError

LISTS = {
    "images_variant_trainval.txt": "0000003 Hawk T1\n0000001 707-320\n0000002 A300B4\n",
    "images_variant_test.txt": "0000004 707-320\n",
    "images_family_trainval.txt": "0000003 Hawk T1\n0000001 Boeing 707\n0000002 A300\n",
    "images_family_test.txt": "0000004 Boeing 707\n",
    "images_manufacturer_trainval.txt": "0000003 British Aerospace\n0000001 Boeing\n0000002 Airbus\n",
    "images_manufacturer_test.txt": "0000004 Boeing\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    data = tmp_path / "fgvc-aircraft-2013b/data"
    (data / "images").mkdir(parents=True)
    for name, text in LISTS.items():
        (data / name).write_text(text)
    for number in range(1, 5):
        (data / f"images/{number:07}.jpg").touch()
    return tmp_path


def test_labels_are_positions_among_sorted_variants(root: Path) -> None:
    images = DATA_SETS["aircraft"].load(root)
    assert images.classes == {0: "707-320", 1: "A300B4", 2: "Hawk T1"}
    assert images.labels.tolist() == [2, 0, 1, 0]
    assert images.paths == ["0000003.jpg", "0000001.jpg", "0000002.jpg", "0000004.jpg"]


def test_trainval_is_called_train(root: Path) -> None:
    assert DATA_SETS["aircraft"].load(root).table["split"].to_pylist() == ["train", "train", "train", "test"]


def test_hierarchy_is_manufacturer_then_family(root: Path) -> None:
    hierarchy = DATA_SETS["aircraft"].load(root).hierarchy
    assert hierarchy[0] == ("Boeing", "Boeing 707")
    assert hierarchy[2] == ("British Aerospace", "Hawk T1")


def test_missing_level_lists_drop_the_level(root: Path) -> None:
    (root / "fgvc-aircraft-2013b/data/images_family_test.txt").unlink()
    assert DATA_SETS["aircraft"].load(root / "fgvc-aircraft-2013b").hierarchy[0] == ("Boeing",)


@pytest.mark.parametrize("name", ["images_variant_trainval.txt", "images_variant_test.txt", "images/0000002.jpg"])
def test_missing_file_error_has_layout_and_url(root: Path, name: str) -> None:
    missing = root / "fgvc-aircraft-2013b/data" / name
    missing.unlink()
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["aircraft"].load(root)
    assert f"{missing} does not exist" in str(error.value)
    assert "fgvc-aircraft-2013b/" in str(error.value)
    assert "robots.ox.ac.uk" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("images_variant_trainval.txt", "0000003 Hawk T1\n0000001\n"),
        ("images_family_test.txt", "0000009 Boeing 707\n"),
    ],
)
def test_damaged_list_is_an_error(root: Path, name: str, text: str) -> None:
    (root / "fgvc-aircraft-2013b/data" / name).write_text(text)
    with pytest.raises(DataError, match="damaged"):
        DATA_SETS["aircraft"].load(root)
