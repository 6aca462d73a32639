"""Resizing, the test transform, color changes and random views."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from justright.data.transforms import (
    TRANSFORMS,
    ImageRecipe,
    Plain,
    Strong,
    Weak,
    center_crop,
    crop,
    describe,
    draw_view,
    gaussian_blur,
    jitter,
    normalize,
    random_box,
    recolored,
    resize,
    resize_shorter,
    to_pixels,
    transform_named,
)
from justright.utils.errors import DataError, JustrightError


def photo(height=40, width=60, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_arrays_images_and_tensors_become_the_same_pixels():
    pixels = to_pixels(photo())
    assert pixels.shape == (3, 40, 60)
    assert torch.equal(pixels, to_pixels(Image.fromarray(photo())))
    assert to_pixels(pixels) is pixels
    with pytest.raises(DataError, match="mode L"):
        to_pixels(Image.new("L", (4, 4)))


@pytest.mark.parametrize(("height", "width", "expected"), [(40, 60, (20, 30)), (61, 40, (30, 20)), (7, 7, (20, 20))])
def test_shorter_side_gets_the_size_and_the_longer_is_rounded_down(height, width, expected):
    assert resize_shorter(to_pixels(photo(height, width)), 20).shape[1:] == expected


def test_resizing_is_within_two_gray_levels_of_pillow():
    expected = np.asarray(Image.fromarray(photo()).resize((30, 20), Image.Resampling.BICUBIC)).astype(int)
    result = resize(to_pixels(photo()), 20, 30).permute(1, 2, 0).numpy().astype(int)
    assert np.abs(result - expected).max() <= 2


def test_pixels_of_the_right_size_are_not_touched():
    pixels = to_pixels(photo())
    assert resize(pixels, 40, 60) is pixels


def test_center_crop_rounds_half_pixels_to_even():
    pixels = to_pixels(photo(11, 13))
    assert torch.equal(center_crop(pixels, 8), crop(pixels, 2, 2, 8, 8))  # 1.5 and 2.5 both round to 2


def test_normalizing_is_done_color_by_color():
    pixels = torch.tensor([0, 255, 51], dtype=torch.uint8).view(3, 1, 1)
    result = normalize(pixels, (0.5, 0.5, 0.0), (0.5, 0.25, 1.0)).flatten()
    torch.testing.assert_close(result, torch.tensor([-1.0, 2.0, 0.2]))


def test_test_transform_is_near_pillow_and_takes_arrays_too():
    pixels = np.random.default_rng(0).integers(0, 256, (50, 81, 3), dtype=np.uint8)
    recipe = ImageRecipe(resolution=28, resize=32, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    result = recipe.preprocess(Image.fromarray(pixels))
    resized = np.asarray(Image.fromarray(pixels).resize((51, 32), Image.Resampling.BICUBIC))
    expected = resized[2:30, 12:40].transpose(2, 0, 1) / 255
    assert np.abs(result.numpy() - expected).max() <= 2.01 / 255
    assert torch.equal(result, recipe.preprocess(pixels))
    assert recipe.crop == pytest.approx(0.875)
    with pytest.raises(JustrightError, match="mode L"):
        recipe.preprocess(Image.new("L", (40, 40)))


def test_another_resolution_keeps_the_share_of_the_crop():
    other = ImageRecipe().at(448)
    assert (other.resolution, other.resize) == (448, 512)
    assert ImageRecipe(**asdict(other)) == other


def jitter_as_steps(image, brightness, contrast, saturation, hue, order):
    """The four changes one after the other, pixel by pixel, without the one map."""
    gray = np.array([0.299, 0.587, 0.114])
    for step in order:
        if step == 0:
            image = brightness * image
        elif step == 1:
            image = contrast * image + (1 - contrast) * np.tensordot(gray, image, 1).mean()
        elif step == 2:
            image = saturation * image + (1 - saturation) * np.tensordot(gray, image, 1)
        else:
            y = np.tensordot(gray, image, 1)
            i = np.tensordot([0.5959, -0.2746, -0.3213], image, 1)
            q = np.tensordot([0.2115, -0.5227, 0.3112], image, 1)
            turned = (i + 1j * q) * np.exp(2j * np.pi * hue)
            back = np.linalg.inv(np.array([gray, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]]))
            image = np.tensordot(back, np.stack([y, turned.real, turned.imag]), 1)
    return np.clip(image, 0, 1)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
def test_color_map_equals_its_steps(order):
    image = np.random.default_rng(0).uniform(0, 1, (3, 9, 7))
    color = jitter(image.mean(axis=(1, 2)), 1.2, 0.7, 1.3, 0.08, order)
    result = recolored(torch.from_numpy(image), color)
    np.testing.assert_allclose(result, jitter_as_steps(image, 1.2, 0.7, 1.3, 0.08, order), atol=1e-12)


torch.set_num_threads(1)  # small images: threads would only wait for each other
RECIPE = ImageRecipe(resolution=28, resize=32)
PLAIN = ImageRecipe(resolution=28, resize=32, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))


def draw(transform, view=0, seed=0, image_id="a", recipe=RECIPE, image=None):
    image = photo() if image is None else image
    return draw_view(image, transform, recipe, seed=seed, image_id=image_id, view=view)


@pytest.mark.parametrize("transform", [Weak(), Strong()])
def test_view_depends_only_on_seed_image_and_number(transform):
    view = draw(transform)
    assert view.shape == (3, 28, 28)
    assert torch.equal(view, draw(transform))
    for other in ({"view": 1}, {"seed": 1}, {"image_id": "b"}):
        assert not torch.equal(view, draw(transform, **other))


def test_every_plain_view_is_the_test_transform_of_the_recipe():
    expected = RECIPE.preprocess(photo())
    for other in ({}, {"view": 1}, {"seed": 1}, {"image_id": "b"}):
        assert torch.equal(draw(Plain(), **other), expected)
    assert transform_named("plain") == Plain()


def test_weak_view_is_a_random_crop_flipped_half_the_time():
    resized = PLAIN.at(28)
    whole = ImageRecipe(resolution=32, resize=32, mean=PLAIN.mean, std=PLAIN.std)
    square = photo(40, 40)
    reference = whole.preprocess(square)
    windows = {(top, left): reference[:, top : top + 28, left : left + 28] for top in range(5) for left in range(5)}
    n_flipped, corners = 0, set()
    for view in range(200):
        drawn = draw(Weak(), view, recipe=resized, image=square)
        plain = [corner for corner, window in windows.items() if torch.equal(drawn, window)]
        flipped = [corner for corner, window in windows.items() if torch.equal(drawn, window.flip(-1))]
        assert len(plain) + len(flipped) == 1
        n_flipped += len(flipped)
        corners |= set(plain + flipped)
    assert 70 < n_flipped < 130
    assert len(corners) == 25


def test_strong_view_without_changes_is_the_resized_image():
    still = Strong(scale=(1.0, 1.0), ratio=(1.0, 1.0), flip=0.0, jitter=0.0, grayscale=0.0, blur=0.0)
    square = photo(50, 50)
    expected = ImageRecipe(resolution=28, resize=28, mean=PLAIN.mean, std=PLAIN.std).preprocess(square)
    torch.testing.assert_close(draw(still, recipe=PLAIN, image=square), expected)


def test_strong_view_parts_have_their_probabilities():
    gray = Strong(flip=0.0, jitter=0.0, grayscale=0.2, blur=0.0)
    is_gray = [bool(torch.allclose(v[0], v[1])) for v in (draw(gray, n, recipe=PLAIN) for n in range(250))]
    assert 0.12 < np.mean(is_gray) < 0.28
    still = {"scale": (1.0, 1.0), "ratio": (1.0, 1.0), "flip": 0.0, "grayscale": 0.0}
    reference = draw(Strong(**still, jitter=0.0, blur=0.0), image=photo(40, 40))
    for part in ("jitter", "blur"):
        transform = Strong(**still | {"jitter": 0.0, "blur": 0.0} | {part: 0.5})
        changed = [not torch.equal(draw(transform, n, image=photo(40, 40)), reference) for n in range(200)]
        assert 0.38 < np.mean(changed) < 0.62, part


@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_random_box_lies_inside(height, width, seed):
    top, left, box_height, box_width = random_box(
        height, width, (0.3, 1.0), (3 / 4, 4 / 3), np.random.default_rng(seed)
    )
    assert 0 <= top <= top + box_height <= height
    assert 0 <= left <= left + box_width <= width
    assert box_height >= 1
    assert box_width >= 1


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 400), (300, 2)])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=list(TRANSFORMS))
def test_tiny_and_narrow_images_have_views(transform, height, width):
    view = draw(transform, image=photo(height, width))
    assert view.shape == (3, 28, 28)
    assert torch.isfinite(view).all()


def test_blur_is_a_normalized_gaussian_mirrored_at_the_border():
    image = torch.zeros(3, 31, 31, dtype=torch.float64)
    image[:, 15, 15] = 1.0
    blurred = gaussian_blur(image, 1.5)
    offsets = torch.arange(-5, 6, dtype=torch.float64)
    weights = torch.exp(-0.5 * (offsets / 1.5) ** 2)
    weights /= weights.sum()
    torch.testing.assert_close(blurred[0, 10:21, 10:21], weights[:, None] * weights)
    flat = torch.full((3, 4, 4), 0.3)
    torch.testing.assert_close(gaussian_blur(flat, 2.0), flat)


def test_transforms_are_looked_up_by_name_and_described():
    assert transform_named("weak") == Weak()
    assert transform_named(Strong(blur=0.0)) == Strong(blur=0.0)
    assert describe(Strong())["hue"] == 0.1
    with pytest.raises(JustrightError, match="no transform is called 'mild'"):
        transform_named("mild")
