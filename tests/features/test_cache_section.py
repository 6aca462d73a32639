"""A section of the cache: atomic, shared, never damaged features."""

from __future__ import annotations

import os

import numpy as np
import pytest
from tests.features.filled_cache import IDS, KEY, filled

from justright.features.cache import FeatureCache
from justright.features.cache_section import digests


def test_what_was_added_is_found_in_any_order(tmp_path, features):
    section = filled(tmp_path, features).section(KEY)
    order = np.array([4, 0, 5, 2])
    is_found, found = section.read(IDS[order])
    assert is_found.all()
    np.testing.assert_array_equal(found, features[order])


def test_unknown_images_are_not_found(tmp_path, features):
    section = filled(tmp_path, features).section(KEY)
    asked = digests(["image 1", "unseen", "image 5"])
    np.testing.assert_array_equal(section.holds(asked), [True, False, True])
    is_found, found = section.read(asked)
    np.testing.assert_array_equal(is_found, [True, False, True])
    np.testing.assert_array_equal(found, features[[1, 5]])


def test_an_empty_section_finds_nothing(tmp_path):
    is_found, found = FeatureCache(tmp_path).section(KEY).read(IDS)
    assert not is_found.any()
    assert found is None


def test_a_section_is_a_snapshot(tmp_path, features):
    cache = FeatureCache(tmp_path)
    before = cache.section(KEY)
    cache.section(KEY).add(IDS, features)
    assert not before.holds(IDS).any()
    assert cache.section(KEY).holds(IDS).all()


def test_a_removed_block_is_a_miss(tmp_path, features):
    section = filled(tmp_path, features).section(KEY)
    next(file for file in section.folder.glob("*.npy") if not file.name.endswith(".ids.npy")).unlink()
    is_found, found = section.read(IDS)
    assert is_found.sum() == 3
    np.testing.assert_array_equal(found, features[is_found])


@pytest.mark.parametrize("damage", ["cut", "bit"])
def test_a_damaged_block_is_never_used(tmp_path, features, damage):
    section = filled(tmp_path, features).section(KEY)
    for file in section.folder.glob("*.npy"):
        if not file.name.endswith(".ids.npy"):
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data if damage == "bit" else data[:-9])
    is_found, found = section.read(IDS)
    assert not is_found.any()
    assert found is None


def test_damaged_ids_are_left_out(tmp_path, features):
    cache = filled(tmp_path, features)
    next(cache.section(KEY).folder.glob("*.ids.npy")).write_bytes(b"")
    assert cache.section(KEY).holds(IDS).sum() == 3


def test_reading_counts_as_use(tmp_path, features):
    section = filled(tmp_path, features).section(KEY)
    for file in section.folder.glob("*.ids.npy"):
        os.utime(file, (1, 1))
    section.read(IDS[:1])
    assert sum(file.stat().st_mtime > 1 for file in section.folder.glob("*.ids.npy")) == 1


def damaged(path, how, other):
    data = bytearray(path.read_bytes())
    if how == "swap":
        path.write_bytes(other.read_bytes())
        other.write_bytes(data)
        return
    if how == "header":
        data[20] ^= 1
    elif how == "bit":
        data[-1] ^= 1
    elif how == "zeros":
        data[-16:] = bytes(16)
    path.write_bytes(data[:-5] if how == "cut" else data)


@pytest.mark.parametrize("how", ["header", "bit", "zeros", "cut", "swap"])
@pytest.mark.parametrize("is_ids", [True, False])
def test_no_damage_to_ids_or_features_gives_an_image_the_features_of_another(tmp_path, features, how, is_ids):
    cache = filled(tmp_path, features)
    files = [file for file in cache.section(KEY).folder.glob("*.npy") if file.name.endswith(".ids.npy") == is_ids]
    damaged(*files[:1], how, files[1])
    section = cache.section(KEY)
    is_found, found = section.read(IDS)
    assert is_found.sum() == (0 if how == "swap" else 3)
    if found is not None:
        np.testing.assert_array_equal(found, features[is_found])
    section.add(IDS[~is_found], features[~is_found])
    assert cache.section(KEY).read(IDS)[0].all()


def test_a_block_of_another_section_does_not_fit(tmp_path, features):
    cache = filled(tmp_path, features)
    other = cache.section({**KEY, "computation": {"precision": "float16"}})
    for file in cache.section(KEY).folder.glob("*.npy"):
        (other.folder / file.name).write_bytes(file.read_bytes())
    is_found, _ = cache.section({**KEY, "computation": {"precision": "float16"}}).read(IDS)
    assert not is_found.any()


def test_a_block_of_an_older_version_is_computed_again_and_that_is_said(tmp_path, features, caplog):
    section = filled(tmp_path, features).section(KEY)
    for file in list(section.folder.glob("*.npy")):
        file.rename(file.with_name(f"0123abcd-{file.name.partition('-')[2]}"))
    is_found, _ = FeatureCache(tmp_path).section(KEY).read(IDS)
    assert not is_found.any()
    assert "of an older version: what it held is computed again" in caplog.text
