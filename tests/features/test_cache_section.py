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
