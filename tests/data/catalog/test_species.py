from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from justright.data.catalog import DATA_SETS
from justright.errors import DataError, MissingDataError

WORM = "00000_Animalia_Annelida_Clitellata_Haplotaxida_Lumbricidae_Lumbricus_terrestris"
BEE = "00204_Animalia_Arthropoda_Insecta_Hymenoptera_Apidae_Apis_mellifera"
BUMBLEBEE = "00205_Animalia_Arthropoda_Insecta_Hymenoptera_Apidae_Bombus_terrestris"


def touch(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


@pytest.fixture
def herbarium(tmp_path: Path) -> Path:
    for file in ("train/2/b.jpg", "train/2/a.jpg", "train/10/c.jpg", "validation/2/d.jpg", "validation/10/e.jpg"):
        touch(tmp_path / f"small-{file}")
    return tmp_path


def test_folders_are_sorted_as_strings_and_files_by_name(herbarium: Path) -> None:
    images = DATA_SETS["herbarium19"].load(herbarium)
    assert images.classes == {0: "10", 1: "2"}
    assert images.of_split("train").paths == ["small-train/10/c.jpg", "small-train/2/a.jpg", "small-train/2/b.jpg"]
    assert images.of_split("train").labels.tolist() == [0, 1, 1]
    assert images.of_split("test").labels.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["small-train", "small-validation", "small-validation/10"])
def test_a_missing_folder_of_herbarium_is_named_with_the_layout_and_where_to_ask(herbarium: Path, name: str) -> None:
    shutil.rmtree(herbarium / name)
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["herbarium19"].load(herbarium)
    assert f"{herbarium / name} is not there" in str(error.value)
    assert "small-validation/0" in str(error.value)
    assert "herbarium-2019-fgvc6" in str(error.value)


@pytest.mark.parametrize("name", ["small-train", "small-validation", "small-train/10"])
def test_an_empty_folder_of_the_herbarium_is_named(herbarium: Path, name: str) -> None:
    shutil.rmtree(herbarium / name)
    (herbarium / name).mkdir()
    with pytest.raises(MissingDataError, match=f"{name}/"):
        DATA_SETS["herbarium19"].load(herbarium)


def test_a_class_that_only_validation_has_is_named(herbarium: Path) -> None:
    (herbarium / "small-validation/7").mkdir()
    with pytest.raises(DataError, match="small-validation/7 is no class of small-train"):
        DATA_SETS["herbarium19"].load(herbarium)


@pytest.fixture
def insects(tmp_path: Path) -> Path:
    for folder in (BUMBLEBEE, WORM, BEE):
        for name in ("b.jpg", "a.jpg"):
            touch(tmp_path / "train_mini" / folder / name)
    return tmp_path


def test_only_insects_are_read_in_the_order_of_their_numbers(insects: Path) -> None:
    images = DATA_SETS["inat-insects"].load(insects)
    assert images.classes == {0: "Apis mellifera", 1: "Bombus terrestris"}
    assert images.labels.tolist() == [0, 0, 1, 1]
    assert images.paths[:2] == [f"train_mini/{BEE}/a.jpg", f"train_mini/{BEE}/b.jpg"]
    assert images.table["split"].unique().to_pylist() == ["train"]


def test_the_hierarchy_is_order_family_genus(insects: Path) -> None:
    images = DATA_SETS["inat-insects"].load(insects)
    assert images.hierarchy[0] == ("Hymenoptera", "Apidae", "Apis")
    assert images.table["superclass"].to_pylist() == ["Apis", "Apis", "Bombus", "Bombus"]


def test_validation_images_are_the_test_part(insects: Path) -> None:
    for folder in (WORM, BEE, BUMBLEBEE):
        touch(insects / "val" / folder / "v.jpg")
    assert DATA_SETS["inat-insects"].load(insects).of_split("test").labels.tolist() == [0, 1]


def test_the_names_that_torchvision_gives_are_known(insects: Path) -> None:
    (insects / "train_mini").rename(insects / "2021_train_mini")
    assert len(DATA_SETS["inat-insects"].load(insects)) == 4


def test_a_missing_folder_of_insects_is_named_with_the_layout_and_where_to_ask(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["inat-insects"].load(tmp_path)
    assert f"{tmp_path / 'train_mini'} is not there" in str(error.value)
    assert "Animalia_Arthropoda_Insecta" in str(error.value)
    assert "inat_comp" in str(error.value)


def test_a_tree_without_insects_is_told(insects: Path) -> None:
    for folder in (BEE, BUMBLEBEE):
        shutil.rmtree(insects / "train_mini" / folder)
    with pytest.raises(MissingDataError, match="_Insecta_"):
        DATA_SETS["inat-insects"].load(insects)


def test_an_empty_folder_of_insects_is_named(insects: Path) -> None:
    (insects / "val" / BEE).mkdir(parents=True)
    with pytest.raises(MissingDataError, match=f"val/{BEE}"):
        DATA_SETS["inat-insects"].load(insects)


def test_a_folder_that_is_no_taxon_is_named(insects: Path) -> None:
    (insects / "train_mini/notes").mkdir()
    with pytest.raises(DataError, match="notes is no class folder"):
        DATA_SETS["inat-insects"].load(insects)
