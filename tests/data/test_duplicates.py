"""Copies, exact and near."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageEnhance
from tests.data.drawn_files import drawing, file_of, of_kind, paths, put

from justright.data.audit import audit
from justright.data.duplicates import COLOR_TOLERANCE, HASH_BITS, groups_of, look_of, near_components
from justright.data.opening import open_images
from justright.utils.errors import DataError

CHANGES: dict[str, Callable[[Image.Image], bytes]] = {
    "re-encoded": lambda image: file_of(image, "JPEG", quality=60),
    "half": lambda image: file_of(image.resize((48, 48))),
    "larger": lambda image: file_of(image.resize((250, 250))),
    "brighter": lambda image: file_of(ImageEnhance.Brightness(image).enhance(1.08)),
    "darker": lambda image: file_of(ImageEnhance.Brightness(image).enhance(0.9)),
    "turned by EXIF": lambda image: file_of(image.rotate(90), "JPEG", quality=95, exif=turned()),
}


def turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6  # a viewer turns it a quarter clockwise
    return exif


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(100, 104))
def test_changed_copy_is_found(photos, change, seed):
    put(photos / "cat" / "original.png", drawing(seed))
    put(photos / "cat" / "copy.png", CHANGES[change](drawing(seed)))
    (found,) = of_kind(audit([open_images(photos)]), "copies_near")
    assert paths(found) == {"cat/original.png", "cat/copy.png"}


def test_different_images_are_not_copies(tmp_path):
    for seed in range(300):
        put(tmp_path / "all" / f"{seed}.png", drawing(seed, 48))
    assert audit([open_images(tmp_path / "all")]).findings == []


def test_color_tells_images_of_one_shape_apart():
    red, blue = Image.new("RGB", (64, 64), "white"), Image.new("RGB", (64, 64), "white")
    ImageDraw.Draw(red).ellipse((10, 10, 50, 54), fill=(200, 60, 0))
    ImageDraw.Draw(blue).ellipse((10, 10, 50, 54), fill=(0, 60, 200))
    hashes, *colors = zip(*(look_of(image) for image in (red, blue)), strict=True)
    alike = near_components(np.array(hashes, np.uint64), np.array(colors).T, 10)
    assert alike[0] != alike[1]


def test_blank_images_are_no_near_copies_of_each_other(photos):
    for level in range(40):
        put(photos / "cat" / f"blank{level}.png", Image.new("RGB", (40 + level, 30), (level * 6,) * 3))
    assert audit([open_images(photos)]).findings == []


def test_chain_of_near_copies_is_one_group():
    hashes = np.array([0b0, 0b11, 0b1111, 0b111111, 2**40 - 1], np.uint64)
    alike = near_components(hashes, np.full((5, 3), 333), near=2)
    assert [group.tolist() for group in groups_of(alike)] == [[0, 1, 2, 3]]


def by_brute_force(hashes: list[int], colors: list[tuple[int, int, int]], near: int) -> list[set[int]]:
    """Groups of near copies, every pair compared."""
    groups = [{number} for number in range(len(hashes))]
    for a in range(len(hashes)):
        for b in range(a):
            is_near = (hashes[a] ^ hashes[b]).bit_count() <= near
            if is_near and max(abs(x - y) for x, y in zip(colors[a], colors[b], strict=True)) <= COLOR_TOLERANCE:
                one, other = (next(group for group in groups if number in group) for number in (a, b))
                if one is not other:
                    groups.remove(other)
                    one |= other
    return [group for group in groups if len(group) > 1]


@st.composite
def crowded_hashes(draw: st.DrawFn) -> list[int]:
    """Hashes that lie close to a few centers."""
    centers = draw(st.lists(st.integers(0, 2**HASH_BITS - 1), min_size=1, max_size=3))
    bits = st.lists(st.integers(0, HASH_BITS - 1), max_size=8)
    members = draw(st.lists(st.tuples(st.sampled_from(centers), bits), max_size=40))
    return [center ^ sum(1 << bit for bit in set(flipped)) for center, flipped in members]


@settings(max_examples=150, deadline=None)
@given(crowded_hashes(), st.integers(0, 10), st.randoms(use_true_random=False))
def test_near_search_agrees_with_comparing_every_pair(hashes, near, random):
    colors = [tuple(random.choice((300, 310, 320, 400)) for _ in range(3)) for _ in hashes]
    found = near_components(np.array(hashes, np.uint64), np.array(colors, np.int64).reshape(-1, 3), near)
    groups = sorted(set(group.tolist()) for group in groups_of(found))
    assert sorted(map(sorted, groups)) == sorted(map(sorted, by_brute_force(hashes, colors, near)))


def test_many_equal_looks_are_one_group():
    hashes = np.full(200_000, 12345, np.uint64)
    (group,) = groups_of(near_components(hashes, np.full((200_000, 3), 333)))
    assert len(group) == 200_000


def test_near_above_the_maximum_is_rejected():
    with pytest.raises(DataError, match="0 to 10"):
        near_components(np.zeros(2, np.uint64), np.zeros((2, 3), int), 11)
