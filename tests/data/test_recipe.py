"""The test transform of a backbone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from justright.data.recipe import ImageRecipe
from justright.utils.errors import JustrightError


def test_the_test_transform_is_near_pillow_and_takes_arrays_too():
    pixels = np.random.default_rng(0).integers(0, 256, (50, 81, 3), dtype=np.uint8)
    recipe = ImageRecipe(resolution=28, resize=32, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    given = recipe.preprocess(Image.fromarray(pixels))
    resized = np.asarray(Image.fromarray(pixels).resize((51, 32), Image.Resampling.BICUBIC))
    expected = resized[2:30, 12:40].transpose(2, 0, 1) / 255
    assert np.abs(given.numpy() - expected).max() <= 2.01 / 255
    assert torch.equal(given, recipe.preprocess(pixels))
    assert recipe.crop == pytest.approx(0.875)
    with pytest.raises(JustrightError, match="mode L"):
        recipe.preprocess(Image.new("L", (40, 40)))


def test_another_resolution_keeps_the_share_of_the_crop():
    other = ImageRecipe().at(448)
    assert (other.resolution, other.resize) == (448, 512)
    assert ImageRecipe(**other.as_dict()) == other
