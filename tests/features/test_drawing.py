"""Views drawn by threads: the same for any number of them, and each image decoded once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from justright.data import from_dataset, open_folder
from justright.data.image_set import ImageSet
from justright.data.recipe import ImageRecipe
from justright.data.views import Plain, Strong, draw_view
from justright.errors import BadImageError
from justright.features.drawing import ViewDrawer

RECIPE = ImageRecipe(resolution=16, resize=20)


def noise(n: int = 6) -> ImageSet:
    rng = np.random.default_rng(0)
    return from_dataset([(rng.integers(0, 256, (24, 30, 3), dtype=np.uint8), 0) for _ in range(n)], "noise").with_ids()


def drawer(images: ImageSet, n_threads: int = 2) -> ViewDrawer:
    return ViewDrawer(images, Strong(), RECIPE, seed=3, n_threads=n_threads)


def test_each_row_gets_the_view_of_its_number_on_any_number_of_threads():
    images, rows, numbers = noise(), [5, 0, 5, 3], [0, 7, 1, 1 << 61]
    expected = [
        draw_view(images.image(row), Strong(), RECIPE, seed=3, image_id=images.ids[row], view=number)
        for row, number in zip(rows, numbers, strict=True)
    ]
    for n_threads in (1, 5):
        assert torch.equal(drawer(images, n_threads).one_of_each(rows, numbers), torch.stack(expected))


def test_all_views_of_some_rows_are_the_same_views():
    images = noise()
    first, second = drawer(images).all_of_each([4, 1], [2, 9])
    assert torch.equal(first, drawer(images).one_of_each([4, 1], [2, 2]))
    assert torch.equal(second, drawer(images).one_of_each([4, 1], [9, 9]))


def test_an_image_that_is_drawn_twice_is_decoded_once(monkeypatch):
    images, decoded = noise(), []
    plainly = ImageSet.image
    monkeypatch.setattr(ImageSet, "image", lambda self, row: decoded.append(row) or plainly(self, row))
    drawer(images).one_of_each([1, 2, 1, 2], [0, 0, 1, 1])
    drawer(images).all_of_each([3], [0, 1])
    assert sorted(decoded) == [1, 2, 3]


def test_an_image_that_cannot_be_decoded_is_named_by_its_row(tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no image")
    images = open_folder(tmp_path).with_ids()
    with pytest.raises(BadImageError, match=r"image 0: bad\.png: not an image"):
        ViewDrawer(images, Plain(), RECIPE, 0).one_of_each([0], [0])
