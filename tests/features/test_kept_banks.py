from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from justright.features import cache
from justright.features.cache import KeptBanks
from justright.utils.locks import ReaderLease

READER = """
import sys, time
from pathlib import Path
from justright.utils.locks import ReaderLease
held = ReaderLease(Path(sys.argv[1]))
print("reading", flush=True)
time.sleep(60)
"""


@pytest.fixture
def root(tmp_path):
    """Three banks of 1000, 2000 and 3000 bytes, used in this order, and what a kill may leave."""
    for number, (name, backbone) in enumerate((("old", "a"), ("middle", "b"), ("new", "a")), start=1):
        folder = tmp_path / name
        folder.mkdir()
        about = {"backbone": backbone, "transform": {"kind": "Weak"}, "precision": "float16", "n_images": 7}
        text = json.dumps(about)
        (folder / "index.json").write_text(text)
        for view in range(2):
            shard = folder / f"rows000000-view{view:03d}.npy"
            shard.write_bytes(bytes(1000 * number - len(text) if view == 0 else 0))
            os.utime(shard, (number, number))
        os.utime(folder, (number, number))
    return tmp_path


def names(kept):
    return [bank["name"] for bank in kept.all()]


def test_each_bank_says_what_it_is(root):
    (bank,) = [bank for bank in KeptBanks(root).all() if bank["name"] == "middle"]
    said = {"name": "middle", "backbone": "b", "transform": "weak", "precision": "float16", "images": 7, "views": 2}
    assert bank == said | {"bytes": 2000, "used": 2.0}


def test_above_a_limit_those_go_that_were_used_longest_ago(root):
    kept = KeptBanks(root)
    assert kept.clear(limit=6000) == 0
    assert kept.clear(limit=5500) == 1000
    assert names(kept) == ["middle", "new"]
    assert kept.clear(limit=100) == 5000
    assert names(kept) == []


def test_the_banks_of_one_backbone_or_one_bank_are_cleared_alone(root):
    kept = KeptBanks(root)
    assert kept.clear("b") == 2000
    assert kept.clear("old") == 1000
    assert names(kept) == ["new"]
    assert kept.clear() == 3000


def test_bank_without_index_is_listed_and_cleared(root, caplog):
    (root / "old" / "index.json").write_text("[]")
    kept = KeptBanks(root)
    (bank,) = [bank for bank in kept.all() if bank["name"] == "old"]
    assert (bank["backbone"], bank["images"]) == ("", 0)
    assert "cannot be read" in caplog.text
    kept.clear()
    assert names(kept) == names(KeptBanks(root / "nowhere")) == []


def test_a_bank_that_is_read_stays_whoever_clears(root):
    kept, held = KeptBanks(root), ReaderLease(root / "old")
    assert kept.clear(limit=100) == 5000
    assert kept.clear() == 0
    assert names(kept) == ["old"]
    held.release()
    assert kept.clear() == 1000


def test_room_is_made_for_a_new_bank_by_those_used_longest_ago(root, caplog):
    kept = KeptBanks(root, limit="6000B")
    kept.make_room(0)
    assert names(kept) == ["middle", "new", "old"]
    kept.make_room(500)
    assert names(kept) == ["middle", "new"]
    assert "1 KB of the least recently used view banks" in caplog.text
    kept.make_room(10**9)
    assert names(kept) == []


def test_a_bank_that_another_machine_reads_stays_until_it_falls_silent(root):
    words = [
        sys.executable,
        "-c",
        f"from justright.utils import locks\nlocks._host = lambda: 'far'\n{READER}",
        root / "old",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline() == "reading\n"
        kept = KeptBanks(root, limit="1B")
        kept.make_room(10**9)
        assert names(kept) == ["old"]
        reader.kill()
    assert kept.clear() == 0, "nobody can tell from here that it was killed"
    (lease,) = root.glob("*.lease")
    os.utime(lease, (0, 0))
    assert kept.clear() == 1000
    assert names(kept) == []


def test_bank_removed_meanwhile_is_skipped(root, monkeypatch):
    about = cache._describe_bank

    def remove_first(folder):
        if folder.name == "middle":
            shutil.rmtree(folder)
        return about(folder)

    monkeypatch.setattr(cache, "_describe_bank", remove_first)
    assert names(KeptBanks(root)) == ["new", "old"]
