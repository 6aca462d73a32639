from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.data.drawn_files import put

from justright.data.catalog import DATA_SETS
from justright.data.catalog.loaders import imagenet100_classes
from justright.utils.errors import DataError, MissingDataError


def synset(position: int) -> str:
    return f"n{1440000 + position:08}"


@pytest.fixture
def imagenet(tmp_path: Path) -> Path:
    for position in range(1000):
        (tmp_path / "train" / synset(position)).mkdir(parents=True)
    for position in imagenet100_classes():  # the other folders are never looked into
        put(tmp_path / "train" / synset(position) / "b.JPEG", b"")
        put(tmp_path / "train" / synset(position) / "a.JPEG", b"")
        put(tmp_path / "val" / synset(position) / "v.JPEG", b"")
    return tmp_path


@pytest.fixture
def ssb(tmp_path: Path) -> Path:
    for name in ("n02000001", "n01000001"):
        put(tmp_path / "imagenet1k/train" / name / "1.JPEG", b"")
    for name in ("n03000000", "n00000007"):
        put(tmp_path / "imagenet21k" / name / "1.JPEG", b"")
    return tmp_path


def test_hundred_classes_are_those_of_the_gcd_protocol() -> None:
    chosen = imagenet100_classes()
    assert chosen[:10] == [1, 14, 27, 31, 45, 55, 77, 103, 108, 141]
    assert chosen[-3:] == [987, 993, 996]
    assert len(set(chosen)) == 100


def test_splits_do_not_change_the_global_generator() -> None:
    np.random.seed(5)
    expected = np.random.rand()
    np.random.seed(5)
    imagenet100_classes()
    assert np.random.rand() == expected


def test_imagenet_100_is_relabeled_in_the_order_of_the_synsets(imagenet: Path) -> None:
    images = DATA_SETS["imagenet100"].load(imagenet)
    assert images.classes == {label: synset(position) for label, position in enumerate(imagenet100_classes())}
    assert images.paths[:2] == [f"train/{synset(1)}/a.JPEG", f"train/{synset(1)}/b.JPEG"]
    assert images.of_split("train").labels.tolist() == np.repeat(np.arange(100), 2).tolist()
    assert images.of_split("test").labels.tolist() == list(range(100))


def test_tree_that_is_not_the_whole_of_imagenet_is_rejected(imagenet: Path) -> None:
    shutil.rmtree(imagenet / "train" / synset(500))
    with pytest.raises(DataError, match="999 class folders"):
        DATA_SETS["imagenet100"].load(imagenet)


@pytest.mark.parametrize("name", ["train", "val", f"val/{synset(14)}"])
def test_missing_folder_error_has_layout_and_url(imagenet: Path, name: str) -> None:
    shutil.rmtree(imagenet / name)
    with pytest.raises(MissingDataError) as error:
        DATA_SETS["imagenet100"].load(imagenet)
    assert f"{imagenet / name}" in str(error.value)
    assert "val/n01440764" in str(error.value)
    assert "image-net.org" in str(error.value)


def test_empty_class_folder_is_reported(imagenet: Path) -> None:
    for image in (imagenet / "train" / synset(27)).iterdir():
        image.unlink()
    with pytest.raises(MissingDataError, match=synset(27)):
        DATA_SETS["imagenet100"].load(imagenet)


def test_ssb_labels_count_the_known_synsets_first(ssb: Path) -> None:
    images = DATA_SETS["imagenet1k-ssb"].load(ssb)
    assert images.classes == {0: "n01000001", 1: "n02000001", 2: "n00000007", 3: "n03000000"}
    assert images.paths == [
        "imagenet1k/train/n01000001/1.JPEG",
        "imagenet1k/train/n02000001/1.JPEG",
        "imagenet21k/n00000007/1.JPEG",
        "imagenet21k/n03000000/1.JPEG",
    ]
    assert images.table["split"].unique().to_pylist() == ["train"]


def test_synset_in_both_trees_is_read_once(ssb: Path) -> None:
    put(ssb / "imagenet21k/n01000001/other.JPEG", b"")
    assert DATA_SETS["imagenet1k-ssb"].load(ssb).labels.tolist() == [0, 1, 2, 3]


def test_layout_that_ssb_downloads_is_read_with_its_test_part(tmp_path: Path) -> None:
    for part in ("train", "val"):
        put(tmp_path / "ImageNet-1K" / part / "n01000001/1.JPEG", b"")
        put(tmp_path / f"ImageNet-21K/imagenet21k_{part}/n03000000/1.JPEG", b"")
    images = DATA_SETS["imagenet1k-ssb"].load(tmp_path)
    assert images.labels.tolist() == [0, 1, 0, 1]
    assert images.table["split"].to_pylist() == ["train", "train", "test", "test"]


@pytest.mark.parametrize("name", ["imagenet1k", "imagenet1k/train", "imagenet21k"])
def test_missing_part_of_ssb_is_reported(ssb: Path, name: str) -> None:
    shutil.rmtree(ssb / name)
    with pytest.raises(MissingDataError, match=f"{name} does not exist"):
        DATA_SETS["imagenet1k-ssb"].load(ssb)


def test_21k_tree_without_further_synsets_is_reported(ssb: Path) -> None:
    for name in ("n03000000", "n00000007"):
        (ssb / "imagenet21k" / name).rename(ssb / name)
    put(ssb / "imagenet21k/n01000001/1.JPEG", b"")
    with pytest.raises(MissingDataError, match="imagenet21k"):
        DATA_SETS["imagenet1k-ssb"].load(ssb)
