"""Objects shaped like those of torchvision and of Hugging Face; neither library is needed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.conftest import picture
from tests.data.drawn_files import file_of

from justright.data import from_dataset, open_images
from justright.utils.errors import DataError


class InMemory:
    """As torchvision's CIFAR10: targets, classes, items of picture and label."""

    def __init__(self, as_item=lambda image: image):
        self.targets, self.classes, self.as_item, self.n_decoded = [1, 0, 1], ["crow", "wren"], as_item, 0

    def __len__(self):
        return 3

    def __getitem__(self, i):
        self.n_decoded += 1
        return self.as_item(picture(i)), self.targets[i]


class Image:
    """A feature is recognized by the name of its class."""


class ClassLabel:
    names = ("crow", "wren")


class HuggingFace:
    """As `datasets.Dataset`: features, column access by name, row access by number."""

    column_names = ("photo", "species")

    def __init__(self, encode=False):
        self.features, self.encode = {"photo": Image(), "species": ClassLabel()}, encode

    def __len__(self):
        return 2

    def __getitem__(self, key):
        if isinstance(key, str):
            assert key == "species", "reading the labels must not decode the images"
            return [1, 0]
        photo = {"bytes": file_of(picture(key)), "path": None} if self.encode else picture(key)
        return {"photo": photo, "species": 1 - key}


class ImageFolderLike:
    def __init__(self, root):
        self.root, self.classes = str(root), ["a", "b"]
        self.samples = [(str(root / "a" / "0.png"), 0), (str(root / "b" / "0.png"), 1)]


def test_labels_are_read_at_once_and_images_lazily():
    data = InMemory()
    images = from_dataset(data, "cifar")
    assert images.labels.tolist() == [1, 0, 1]
    assert images.classes == {0: "crow", 1: "wren"}
    assert data.n_decoded == 0
    assert images.image(2).tobytes() == picture(2).tobytes()
    assert data.n_decoded == 1


def test_uint8_arrays_are_images_but_floats_are_not():
    assert from_dataset(InMemory(np.asarray), "x").image(0).tobytes() == picture(0).tobytes()
    with pytest.raises(DataError, match="without a transform"):
        from_dataset(InMemory(lambda image: np.asarray(image) / 255.0), "x").image(0)


def test_labels_without_targets_come_from_items():
    images = from_dataset([(picture(0), 4), (picture(1), 2)], "pairs")
    assert images.classes == {2: "2", 4: "4"}


def test_labels_may_be_tensors():
    pairs = [(picture(row), torch.tensor(label)) for row, label in enumerate([1, 0, 1])]
    assert from_dataset(pairs, "pairs").labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize("encode", [False, True])
def test_hugging_face_data_set(encode):
    images = from_dataset(HuggingFace(encode), "birds")
    assert images.labels.tolist() == [1, 0]
    assert images.classes == {0: "crow", 1: "wren"}
    assert images.image(1).tobytes() == picture(1).tobytes()


def test_image_folder_is_read_from_disk(make_tree):
    root = make_tree({"a": 1, "b": 1})
    images = from_dataset(ImageFolderLike(root), "folder")
    assert images.paths == ["a/0.png", "b/0.png"]
    assert images.image(1).size == (16, 12)


def test_pictures_in_memory_are_saved_with_the_table(tmp_path):
    images = from_dataset(InMemory(), "cifar").take([2, 0]).with_ids()
    images.save(tmp_path / "cifar.parquet")
    again = open_images(tmp_path / "cifar.parquet")
    assert again.ids == images.ids
    assert again.take([1]).image(0).tobytes() == picture(0).tobytes()
    again.take([1]).save(tmp_path / "again.parquet")
    assert open_images(tmp_path / "again.parquet").image(0).tobytes() == picture(0).tobytes()


class Stream:
    """As torch's IterableDataset: it has no length, and its items cannot be chosen."""

    def __getitem__(self, row):
        raise NotImplementedError


def test_other_objects_are_rejected():
    with pytest.raises(DataError, match="cannot open a Stream as images"):
        from_dataset(Stream())
    with pytest.raises(DataError, match="cannot open a int as images"):
        from_dataset(3, "x")
    with pytest.raises(DataError, match="and no targets"):
        from_dataset([3], "x")
