"""The cache by content: listed, bounded, cleared."""

from __future__ import annotations

import os

import pytest
from tests.features.filled_cache import IDS, KEY, filled

from justright.errors import DataError
from justright.features.cache import FeatureCache, parse_size
from justright.features.cache_section import digests


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
def test_a_damaged_key_is_left_out_of_the_list_and_written_again_when_it_is_used(tmp_path, features, text, caplog):
    cache = filled(tmp_path, features)
    (cache.section(KEY).folder / "key.json").write_text(text)
    assert cache.sections() == []
    assert cache.clear("another") == 0
    assert cache.section(KEY).read(IDS)[0].all()
    assert "key.json is damaged; it is written again" in caplog.text
    assert len(cache.sections()) == 1
