from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.data.drawn_files import put

from justright.data.catalog import DATA_SETS
from justright.utils.errors import DataError, MissingDataError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for file in ("train/2/b.jpg", "train/2/a.jpg", "train/10/c.jpg", "validation/2/d.jpg", "validation/10/e.jpg"):
        put(tmp_path / f"small-{file}", b"")
    return tmp_path


def test_folders_are_sorted_as_strings_and_files_by_name(root: Path) -> None:
    images = DATA_SETS["herbarium19"].load(root)
    assert images.classes == {0: "10", 1: "2"}
    assert images.of_split("train").paths == ["small-train/10/c.jpg", "small-train/2/a.jpg", "small-train/2/b.jpg"]
    assert images.of_split("train").labels.tolist() == [0, 1, 1]
    assert images.of_split("test").labels.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["small-train", "small-validation", "small-validation/10"])
def test_missing_folder_error_has_layout_and_url(root: Path, name: str) -> None:
    shutil.rmtree(root / name)
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["herbarium19"].load(root)
    assert f"{root / name} does not exist" in str(error.value)
    assert "small-validation/0" in str(error.value)
    assert "herbarium-2019-fgvc6" in str(error.value)


@pytest.mark.parametrize("name", ["small-train", "small-validation", "small-train/10"])
def test_empty_folder_is_reported(root: Path, name: str) -> None:
    shutil.rmtree(root / name)
    (root / name).mkdir()
    with pytest.raises(MissingDataError, match=f"{name}/"):
        DATA_SETS["herbarium19"].load(root)


def test_class_that_only_validation_has_is_reported(root: Path) -> None:
    (root / "small-validation/7").mkdir()
    with pytest.raises(DataError, match="small-validation/7 is not a class of small-train"):
        DATA_SETS["herbarium19"].load(root)
