"""The cache by content: listed, bounded, cleared."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.features.filled_cache import IDS, KEY, filled

from justright.features.cache import FeatureCache, digests, parse_size
from justright.utils import locks
from justright.utils.errors import DataError


def other(name):
    return KEY | {"backbone": {"name": name}}


def test_another_way_of_computing_is_another_section(tmp_path, features):
    cache = filled(tmp_path, features)
    assert not cache.section(KEY | {"computation": {"precision": "float16"}}).holds(IDS).any()


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
    cache = FeatureCache()
    assert (cache.root, cache.limit) == (tmp_path / "features", 3_000_000)


@pytest.mark.parametrize("text", ["[]", "{}", "", '{"backbone": 3}', '{"backbone": {}}'])
def test_damaged_key_is_skipped_and_rewritten_on_use(tmp_path, features, text, caplog):
    cache = filled(tmp_path, features)
    (cache.section(KEY).folder / "key.json").write_text(text)
    assert cache.sections() == []
    assert cache.clear("another") == 0
    assert cache.section(KEY).read(IDS)[0].all()
    assert "key.json is damaged; it is written again" in caplog.text
    assert len(cache.sections()) == 1


def test_clearing_leaves_what_another_process_writes_at_this_moment(tmp_path, features, monkeypatch):
    """The other one, of another machine, begins before the cache is cleared and ends after that."""
    cache, other_machine = filled(tmp_path, features), FeatureCache(tmp_path)
    section = other_machine.section(KEY)
    publish, is_cleared = Path.replace, []

    def clear_and_publish(temporary, path):
        if not is_cleared:  # the features are written, not yet their ids, nor have they their name
            is_cleared.append(True)
            with monkeypatch.context() as here:
                here.setattr(locks, "_host", lambda: "here")
                assert cache.clear() > 0
        return publish(temporary, path)

    monkeypatch.setattr(Path, "replace", clear_and_publish)
    section.add(IDS[:3], features[:3])
    assert is_cleared
    again = FeatureCache(tmp_path).section(KEY)
    assert again.holds(IDS).tolist() == [True] * 3 + [False] * 3
    assert (again.read(IDS[:3])[1] == features[:3]).all()
    assert [each["images"] for each in cache.sections()] == [3]


def test_cleared_section_is_listed_again_after_its_next_block(tmp_path, features):
    cache = FeatureCache(tmp_path)
    section = cache.section(KEY)
    FeatureCache(tmp_path).clear()
    assert list(tmp_path.iterdir()) == []
    section.add(IDS[:3], features[:3])
    assert [each["images"] for each in cache.sections()] == [3]


def test_old_features_without_ids_are_cleared(tmp_path, features):
    cache = filled(tmp_path, features)
    for ids in tmp_path.glob("*/*.ids.npy"):
        ids.unlink()
    orphans = list(tmp_path.glob("*/*.npy"))
    cache.clear()
    assert list(tmp_path.glob("*/*.npy")) == orphans, "their ids may be written next"
    for each in orphans:
        os.utime(each, (0, 0))
    cache.clear()
    assert list(tmp_path.iterdir()) == []


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
def test_damage_never_swaps_features_between_images(tmp_path, features, how, is_ids):
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
