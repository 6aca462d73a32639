from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from justright.data.recipe import ImageRecipe
from justright.data.views import (
    TRANSFORMS,
    Plain,
    Strong,
    Weak,
    describe,
    draw_view,
    gaussian_blur,
    random_box,
    transform_named,
)
from justright.utils.errors import JustrightError

torch.set_num_threads(1)  # small images: threads would only wait for each other
RECIPE = ImageRecipe(resolution=28, resize=32)
PLAIN = ImageRecipe(resolution=28, resize=32, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))


def photo(height=40, width=60, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def draw(transform, view=0, seed=0, image_id="a", recipe=RECIPE, image=None):
    image = photo() if image is None else image
    return draw_view(image, transform, recipe, seed=seed, image_id=image_id, view=view)


@pytest.mark.parametrize("transform", [Weak(), Strong()])
def test_a_view_depends_on_seed_image_and_number_and_on_nothing_else(transform):
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


def test_a_weak_view_is_a_crop_of_the_resized_image_flipped_half_of_the_time():
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


def test_without_chance_the_strong_view_is_the_resized_image():
    still = Strong(scale=(1.0, 1.0), ratio=(1.0, 1.0), flip=0.0, jitter=0.0, grayscale=0.0, blur=0.0)
    square = photo(50, 50)
    expected = ImageRecipe(resolution=28, resize=28, mean=PLAIN.mean, std=PLAIN.std).preprocess(square)
    torch.testing.assert_close(draw(still, recipe=PLAIN, image=square), expected)


def test_each_part_of_the_strong_view_happens_as_often_as_it_should():
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
def test_a_random_box_lies_inside(height, width, seed):
    top, left, box_height, box_width = random_box(
        height, width, (0.3, 1.0), (3 / 4, 4 / 3), np.random.default_rng(seed)
    )
    assert 0 <= top <= top + box_height <= height
    assert 0 <= left <= left + box_width <= width
    assert box_height >= 1
    assert box_width >= 1


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 400), (300, 2)])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=list(TRANSFORMS))
def test_odd_shapes_have_views_too(transform, height, width):
    view = draw(transform, image=photo(height, width))
    assert view.shape == (3, 28, 28)
    assert torch.isfinite(view).all()


def test_the_blur_is_a_normalized_gaussian_mirrored_at_the_border():
    image = torch.zeros(3, 31, 31, dtype=torch.float64)
    image[:, 15, 15] = 1.0
    blurred = gaussian_blur(image, 1.5)
    offsets = torch.arange(-5, 6, dtype=torch.float64)
    weights = torch.exp(-0.5 * (offsets / 1.5) ** 2)
    weights /= weights.sum()
    torch.testing.assert_close(blurred[0, 10:21, 10:21], weights[:, None] * weights)
    flat = torch.full((3, 4, 4), 0.3)
    torch.testing.assert_close(gaussian_blur(flat, 2.0), flat)


def test_names_and_descriptions():
    assert transform_named("weak") == Weak()
    assert transform_named(Strong(blur=0.0)) == Strong(blur=0.0)
    assert describe(Strong())["hue"] == 0.1
    with pytest.raises(JustrightError, match="no transform is called 'mild'"):
        transform_named("mild")
