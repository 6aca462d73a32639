"""The cache by content: atomic, shared, bounded."""

from __future__ import annotations

import os

import numpy as np
import pytest

from justright.errors import DataError
from justright.features.cache import FeatureCache, digests, home, parse_size

KEY = {"backbone": {"name": "tiny", "pooling": "class"}, "computation": {"precision": "float32"}}


def other(name):
    return KEY | {"backbone": {"name": name}}


@pytest.fixture
def features():
    return np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


IDS = digests([f"image {i}" for i in range(6)])


def filled(root, features, key=KEY, limit=None):
    cache = FeatureCache(root, limit)
    section = cache.section(key)
    section.add(IDS[:3], features[:3])
    section.add(IDS[3:], features[3:])
    return cache


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


def test_another_way_of_computing_is_another_section(tmp_path, features):
    cache = filled(tmp_path, features)
    assert not cache.section(KEY | {"computation": {"precision": "float16"}}).holds(IDS).any()


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


def test_above_the_limit_the_longest_unused_go(tmp_path, features):
    cache = filled(tmp_path, features, limit="1KB")  # one block: 48 + 48 bytes and two headers of 128
    old, used = sorted(cache.section(KEY).folder.glob("*.ids.npy"))
    os.utime(old, (1, 1))
    os.utime(used, (2, 2))
    fresh = FeatureCache(tmp_path, limit="800B")
    fresh.section(KEY).add(digests(["new"]), features[:1])
    left = set(fresh.section(KEY).folder.glob("*.ids.npy"))
    assert old not in left
    assert used in left
    assert len(left) == 2


def test_reading_counts_as_use(tmp_path, features):
    section = filled(tmp_path, features).section(KEY)
    for file in section.folder.glob("*.ids.npy"):
        os.utime(file, (1, 1))
    section.read(IDS[:1])
    assert sum(file.stat().st_mtime > 1 for file in section.folder.glob("*.ids.npy")) == 1


def test_sections_say_what_they_hold(tmp_path, features):
    (section,) = filled(tmp_path, features).sections()
    assert (section["backbone"], section["pooling"], section["precision"]) == ("tiny", "class", "float32")
    assert section["images"] == 6
    assert section["bytes"] == sum(file.stat().st_size for file in tmp_path.glob("*/*.npy"))


def test_one_backbone_can_be_cleared(tmp_path, features):
    cache = filled(tmp_path, features)
    filled(tmp_path, features, other("large"))
    assert cache.clear("tiny") > 0
    assert [section["backbone"] for section in cache.sections()] == ["large"]
    assert cache.clear("unheard of") == 0
    cache.clear()
    assert cache.sections() == []


def test_clearing_to_a_limit_keeps_what_fits(tmp_path, features):
    cache = filled(tmp_path, features)
    assert cache.clear(limit="400B") > 0
    assert cache.sections()[0]["images"] == 3
    assert cache.clear(limit="1GB") == 0


def test_sizes_are_read_with_their_units():
    assert [parse_size(text) for text in ("10GB", "1.5 kb", "7B")] == [10**10, 1500, 7]
    with pytest.raises(DataError, match="'lots' is no size"):
        parse_size("lots")


def test_the_environment_says_where_and_how_much(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("JUSTRIGHT_CACHE_LIMIT", "3MB")
    assert home() == tmp_path
    cache = FeatureCache()
    assert (cache.root, cache.limit) == (tmp_path / "features", 3_000_000)
