"""Images as tensors of bytes: resized, cropped, normalized."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from justright.data.pixels import center_crop, crop, normalize, resize, resize_shorter, to_pixels
from justright.utils.errors import DataError


def photo(height: int = 40, width: int = 60) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_arrays_images_and_tensors_become_the_same_pixels():
    pixels = to_pixels(photo())
    assert pixels.shape == (3, 40, 60)
    assert torch.equal(pixels, to_pixels(Image.fromarray(photo())))
    assert to_pixels(pixels) is pixels
    with pytest.raises(DataError, match="mode L"):
        to_pixels(Image.new("L", (4, 4)))


@pytest.mark.parametrize(("height", "width", "expected"), [(40, 60, (20, 30)), (61, 40, (30, 20)), (7, 7, (20, 20))])
def test_the_shorter_side_gets_the_size_and_the_longer_is_rounded_down(height, width, expected):
    assert resize_shorter(to_pixels(photo(height, width)), 20).shape[1:] == expected


def test_resizing_is_within_two_gray_levels_of_pillow():
    expected = np.asarray(Image.fromarray(photo()).resize((30, 20), Image.Resampling.BICUBIC)).astype(int)
    given = resize(to_pixels(photo()), 20, 30).permute(1, 2, 0).numpy().astype(int)
    assert np.abs(given - expected).max() <= 2


def test_pixels_of_the_right_size_are_not_touched():
    pixels = to_pixels(photo())
    assert resize(pixels, 40, 60) is pixels


def test_the_crop_is_the_middle_and_a_half_pixel_goes_to_the_even_side():
    pixels = to_pixels(photo(11, 13))
    assert torch.equal(center_crop(pixels, 8), crop(pixels, 2, 2, 8, 8))  # 1.5 and 2.5 both round to 2


def test_normalizing_is_done_color_by_color():
    pixels = torch.tensor([0, 255, 51], dtype=torch.uint8).view(3, 1, 1)
    given = normalize(pixels, (0.5, 0.5, 0.0), (0.5, 0.25, 1.0)).flatten()
    torch.testing.assert_close(given, torch.tensor([-1.0, 2.0, 0.2]))
