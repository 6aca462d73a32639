from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.data.drawn_files import put

from justright.data.catalog import DATA_SETS
from justright.utils.errors import DataError, MissingDataError

WORM = "00000_Animalia_Annelida_Clitellata_Haplotaxida_Lumbricidae_Lumbricus_terrestris"
BEE = "00204_Animalia_Arthropoda_Insecta_Hymenoptera_Apidae_Apis_mellifera"
BUMBLEBEE = "00205_Animalia_Arthropoda_Insecta_Hymenoptera_Apidae_Bombus_terrestris"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in (BUMBLEBEE, WORM, BEE):
        for name in ("b.jpg", "a.jpg"):
            put(tmp_path / "train_mini" / folder / name, b"")
    return tmp_path


def test_only_insects_are_read_in_the_order_of_their_numbers(root: Path) -> None:
    images = DATA_SETS["inat-insects"].load(root)
    assert images.classes == {0: "Apis mellifera", 1: "Bombus terrestris"}
    assert images.labels.tolist() == [0, 0, 1, 1]
    assert images.paths[:2] == [f"train_mini/{BEE}/a.jpg", f"train_mini/{BEE}/b.jpg"]
    assert images.table["split"].unique().to_pylist() == ["train"]


def test_hierarchy_is_order_family_genus(root: Path) -> None:
    images = DATA_SETS["inat-insects"].load(root)
    assert images.hierarchy[0] == ("Hymenoptera", "Apidae", "Apis")
    assert images.table["superclass"].to_pylist() == ["Apis", "Apis", "Bombus", "Bombus"]


def test_validation_images_are_the_test_part(root: Path) -> None:
    for folder in (WORM, BEE, BUMBLEBEE):
        put(root / "val" / folder / "v.jpg", b"")
    assert DATA_SETS["inat-insects"].load(root).of_split("test").labels.tolist() == [0, 1]


def test_torchvision_folder_names_are_accepted(root: Path) -> None:
    (root / "train_mini").rename(root / "2021_train_mini")
    assert len(DATA_SETS["inat-insects"].load(root)) == 4


def test_missing_folder_error_has_layout_and_url(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["inat-insects"].load(tmp_path)
    assert f"{tmp_path / 'train_mini'} does not exist" in str(error.value)
    assert "Animalia_Arthropoda_Insecta" in str(error.value)
    assert "inat_comp" in str(error.value)


def test_tree_without_insects_is_reported(root: Path) -> None:
    for folder in (BEE, BUMBLEBEE):
        shutil.rmtree(root / "train_mini" / folder)
    with pytest.raises(MissingDataError, match="_Insecta_"):
        DATA_SETS["inat-insects"].load(root)


def test_empty_class_folder_is_reported(root: Path) -> None:
    (root / "val" / BEE).mkdir(parents=True)
    with pytest.raises(MissingDataError, match=f"val/{BEE}"):
        DATA_SETS["inat-insects"].load(root)


def test_folder_that_is_no_taxon_is_reported(root: Path) -> None:
    (root / "train_mini/notes").mkdir()
    with pytest.raises(DataError, match="damaged or do not belong together"):
        DATA_SETS["inat-insects"].load(root)
