"""The cache by content: listed, bounded, cleared."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.features.filled_cache import ABOUT, IDS, KEY, add, filled

from justright.features import cache
from justright.features.cache import FeatureCache, digests, parse_size
from justright.utils.errors import DataError

HALF = KEY | {"computation": {"precision": "float16"}}


def test_another_precision_has_its_own_section(tmp_path, features):
    cache = filled(tmp_path, features)
    assert not cache.section(HALF, ABOUT).holds(IDS).any()


def test_least_recently_used_blocks_above_the_limit_are_deleted(tmp_path, features):
    cache = filled(tmp_path, features, limit="1KB")  # a block: 48 + 48 bytes, two headers of 128, a digest of 16
    old, used = sorted(cache.section(KEY, ABOUT).folder.glob("*.block"))
    os.utime(old, (1, 1))
    os.utime(used, (2, 2))
    fresh = FeatureCache(tmp_path, limit="800B")
    add(fresh.section(KEY, ABOUT), digests(["new"]), features[:1])
    left = set(fresh.section(KEY, ABOUT).folder.glob("*.block"))
    assert old not in left
    assert used in left
    assert len(left) == 2


def test_sections_list_their_content(tmp_path, features):
    (section,) = filled(tmp_path, features).sections()
    assert (section["backbone"], section["pooling"], section["precision"]) == ("tiny", "class", "float32")
    assert section["images"] == 6
    assert section["bytes"] == sum(file.stat().st_size for file in tmp_path.glob("*/*.block"))


def test_one_backbone_can_be_cleared(tmp_path, features):
    cache = filled(tmp_path, features)
    filled(tmp_path, features, HALF, backbone="large")
    assert cache.clear("tiny") > 0
    assert [section["backbone"] for section in cache.sections()] == ["large"]
    assert cache.clear("unknown") == 0
    cache.clear()
    assert cache.sections() == []


def test_clear_with_a_limit_keeps_what_fits(tmp_path, features):
    cache = filled(tmp_path, features)
    assert cache.clear(limit=400) > 0
    assert cache.sections()[0]["images"] == 3
    assert cache.clear(limit=10**9) == 0


def test_sizes_are_parsed_with_their_units():
    assert [parse_size(text) for text in ("10GB", "1.5 kb", "7B")] == [10**10, 1500, 7]
    with pytest.raises(DataError, match="'lots' is no size"):
        parse_size("lots")


def test_environment_sets_folder_and_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("JUSTRIGHT_CACHE_LIMIT", "3MB")
    cache = FeatureCache()
    assert (cache.root, cache.limit) == (tmp_path / "features", 3_000_000)


@pytest.mark.parametrize("text", ["[]", "{}", "", '{"about": 3}', '{"about": {}}'])
def test_damaged_key_is_skipped_and_rewritten_on_use(tmp_path, features, text, caplog):
    cache = filled(tmp_path, features)
    (cache.section(KEY, ABOUT).folder / "key.json").write_text(text)
    assert cache.sections() == []
    assert cache.clear("another") == 0
    assert cache.section(KEY, ABOUT).read(IDS)[0].all()
    assert "key.json is damaged; it is written again" in caplog.text
    assert len(cache.sections()) == 1


def test_clear_keeps_a_block_that_another_process_is_writing(tmp_path, features, monkeypatch):
    """The other process starts writing before the cache is cleared and ends after that."""
    cache, section = filled(tmp_path, features), FeatureCache(tmp_path).section(KEY, ABOUT)
    publish, is_cleared = Path.replace, []

    def clear_and_publish(temporary, path):
        if not is_cleared:
            is_cleared.append(True)
            assert cache.clear() > 0
        return publish(temporary, path)

    monkeypatch.setattr(Path, "replace", clear_and_publish)
    add(section, IDS[:3], features[:3])
    assert is_cleared
    again = FeatureCache(tmp_path).section(KEY, ABOUT)
    assert again.holds(IDS).tolist() == [True] * 3 + [False] * 3
    assert (again.read(IDS[:3])[1] == features[:3]).all()
    assert [each["images"] for each in cache.sections()] == [3]


def test_section_is_listed_while_it_has_blocks(tmp_path, features):
    cache = FeatureCache(tmp_path)
    section = cache.section(KEY, ABOUT)
    assert cache.sections() == []
    add(section, IDS[3:], features[3:])
    cache.clear()
    assert cache.sections() == []
    add(section, IDS[:3], features[:3])
    assert [each["images"] for each in cache.sections()] == [3]


def test_added_rows_are_read_in_any_order(tmp_path, features):
    section = filled(tmp_path, features).section(KEY, ABOUT)
    order = np.array([4, 0, 5, 2])
    is_found, rows = section.read(IDS[order])
    assert is_found.all()
    np.testing.assert_array_equal(rows, features[order])


def test_unknown_images_are_not_found(tmp_path, features):
    section = filled(tmp_path, features).section(KEY, ABOUT)
    ids = digests(["image 1", "unseen", "image 5"])
    np.testing.assert_array_equal(section.holds(ids), [True, False, True])
    is_found, rows = section.read(ids)
    np.testing.assert_array_equal(is_found, [True, False, True])
    np.testing.assert_array_equal(rows, features[[1, 5]])


def test_empty_section_returns_nothing(tmp_path):
    is_found, rows = FeatureCache(tmp_path).section(KEY, ABOUT).read(IDS)
    assert not is_found.any()
    assert rows is None


def test_section_ignores_later_blocks_of_others(tmp_path, features):
    cache = FeatureCache(tmp_path)
    before = cache.section(KEY, ABOUT)
    assert not before.holds(IDS).any()
    add(cache.section(KEY, ABOUT), IDS, features)
    assert not before.holds(IDS).any()
    assert cache.section(KEY, ABOUT).holds(IDS).all()


def test_rows_of_a_removed_block_are_missing(tmp_path, features):
    section = filled(tmp_path, features).section(KEY, ABOUT)
    next(section.folder.glob("*.block")).unlink()
    is_found, rows = section.read(IDS)
    assert is_found.sum() == 3
    np.testing.assert_array_equal(rows, features[is_found])


@pytest.mark.parametrize("damage", ["cut", "bit"])
def test_damaged_block_is_never_used(tmp_path, features, damage):
    section = filled(tmp_path, features).section(KEY, ABOUT)
    for file in section.folder.glob("*.block"):
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data if damage == "bit" else data[:-9])
    is_found, rows = section.read(IDS)
    assert not is_found.any()
    assert rows is None


def test_file_that_is_no_block_is_ignored(tmp_path, features):
    cache = filled(tmp_path, features)
    next(cache.section(KEY, ABOUT).folder.glob("*.block")).write_bytes(b"")
    assert cache.section(KEY, ABOUT).holds(IDS).sum() == 3


def test_reading_counts_as_use(tmp_path, features):
    section = filled(tmp_path, features).section(KEY, ABOUT)
    for file in section.folder.glob("*.block"):
        os.utime(file, (1, 1))
    section.read(IDS[:1])
    assert sum(file.stat().st_mtime > 1 for file in section.folder.glob("*.block")) == 1


def damaged(path, how, other):
    data = bytearray(path.read_bytes())
    if how == "swap":
        path.write_bytes(other.read_bytes())
        other.write_bytes(data)
        return
    if how == "renamed":
        path.rename(path.with_name(f"{'0' * 32}.block"))
        return
    place = {"header": 20, "ids": 130, "row": -40, "digest": -1}.get(how)
    if place is not None:
        data[place] ^= 1
    elif how == "zeros":
        data[-16:] = bytes(16)
    path.write_bytes(data[:-5] if how == "cut" else data)


@pytest.mark.parametrize("how", ["header", "ids", "row", "digest", "renamed", "zeros", "cut", "swap"])
def test_damage_never_swaps_features_between_images(tmp_path, features, how):
    cache = filled(tmp_path, features)
    one, other = cache.section(KEY, ABOUT).folder.glob("*.block")
    damaged(one, how, other)
    section = cache.section(KEY, ABOUT)
    is_found, rows = section.read(IDS)
    assert is_found.sum() == (0 if how == "swap" else 3)
    if rows is not None:
        np.testing.assert_array_equal(rows, features[is_found])
    add(section, IDS[~is_found], features[~is_found])
    assert cache.section(KEY, ABOUT).read(IDS)[0].all()


def test_block_copied_from_another_section_is_ignored(tmp_path, features):
    cache = filled(tmp_path, features)
    other = cache.section(HALF, ABOUT)
    for file in cache.section(KEY, ABOUT).folder.glob("*.block"):
        (other.folder / file.name).write_bytes(file.read_bytes())
    is_found, _ = cache.section(HALF, ABOUT).read(IDS)
    assert not is_found.any()


def test_leased_section_is_not_deleted(tmp_path, features):
    cache = filled(tmp_path, features)
    lease = cache.section(KEY, ABOUT).lease()
    assert cache.clear() == 0
    assert cache.clear(limit=100) == 0
    lease.close()
    assert cache.clear() > 0
    assert cache.sections() == []


def test_section_read_by_another_process_is_not_deleted(tmp_path, features):
    cache = filled(tmp_path, features)
    folder = cache.section(KEY, ABOUT).folder
    with subprocess.Popen([sys.executable, "-c", READER, folder], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline() == "reading\n"
        assert cache.clear() == 0
        reader.kill()
    assert cache.clear() > 0


READER = """
import sys, time
from pathlib import Path
from justright.features.cache import Section
lease = Section(Path(sys.argv[1])).lease()
print("reading", flush=True)
time.sleep(60)
"""


def test_make_room_deletes_the_least_recently_used(tmp_path, features, caplog):
    cache = filled(tmp_path, features)
    old, used = sorted(cache.section(KEY, ABOUT).folder.glob("*.block"))
    os.utime(old, (1, 1))
    cache.limit = old.stat().st_size + used.stat().st_size
    cache.make_room(0)
    assert old.exists()
    cache.make_room(1)
    assert not old.exists()
    assert used.exists()
    assert "of the least recently used" in caplog.text
    assert "JUSTRIGHT_CACHE_LIMIT" in caplog.text
    cache.make_room(10**9)
    assert not used.exists()


def test_section_removed_by_another_process_is_skipped(tmp_path, features, monkeypatch):
    cache = filled(tmp_path, features)
    monkeypatch.setattr(FeatureCache, "_folders", lambda _: [tmp_path / "gone", cache.section(KEY, ABOUT).folder])
    assert len(cache.sections()) == 1


def test_threads_parse_headers_one_at_a_time(tmp_path, features, monkeypatch):
    """Two at once fail now and then in Python 3.11: "AST constructor recursion depth mismatch"."""
    filled(tmp_path, features)
    n_inside, most = 0, 0
    read = np.lib.format.read_array_header_1_0

    def slow(*arguments, **options):
        nonlocal n_inside, most
        n_inside += 1
        most = max(most, n_inside)
        time.sleep(0.01)
        header = read(*arguments, **options)
        n_inside -= 1
        return header

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", slow)
    blocks = sorted(tmp_path.rglob("*.block")) * 4
    with ThreadPoolExecutor(8) as pool:
        assert all(len(ids) == 3 for ids, _ in pool.map(cache._open_block, blocks))
    assert most == 1
