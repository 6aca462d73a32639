from __future__ import annotations

import gc
import json
import os

from tests.bad_day.commands import discover, results
from tests.cli.conftest import invoke
from tests.leases import left_by_a_dead_process


def call(*words: object, exit_code: int = 0) -> str:
    return invoke(words, exit_code).output


def test_cache_is_listed_and_cleared(make_tree, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    extract = ("extract", "--backbone", "glyph_vit")
    call(*extract, make_tree({"cats": 3}), "--out", tmp_path / "t")
    call(*extract, make_tree({"cats": 4}, "uncached", first_seed=50), "--out", tmp_path / "u", "--no-cache")
    value = json.loads(call("cache", "list", "--json"))
    assert [(section["backbone"], section["images"]) for section in value["sections"]] == [("glyph_vit", 3)]
    assert "glyph_vit" in call("cache", "list")
    assert json.loads(call("cache", "clear", "--limit", "1GB", "--json"))["freed"] == 0
    assert json.loads(call("cache", "clear", "--backbone", "another", "--json"))["freed"] == 0
    assert json.loads(call("cache", "clear", "--json"))["freed"] == value["bytes"]
    assert "0 B of at most 20 GB" in call("cache", "list")
    assert "'much' is no size" in call("cache", "clear", "--limit", "much", exit_code=1)


def test_cache_lists_and_clears_banks_and_leftovers(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    call(*discover(tmp_path / "run", "--set", "views=3"))
    (bank,) = [each for each in banks() if each["transform"] == "weak"]
    assert (bank["backbone"], bank["precision"], bank["views"]) == ("glyph_vit", "float16", 64 * 3)
    assert bank["bytes"] > 64 * 3 * 4000
    assert bank["name"] in call("cache", "list")
    half = left_by_a_dead_process(tmp_path / "home" / "banks" / bank["name"] / "a.block")
    half.write_bytes(bytes(5000))
    listed = json.loads(call("cache", "list", "--json"))
    assert listed["leftovers"] == {"files": [str(half)], "bytes": 5000}
    assert "5 KB half-written" in call("cache", "list")
    freed = json.loads(call("cache", "clear", "--limit", "1GB", "--json"))
    assert (freed["leftovers"], freed["banks"], freed["features"]) == (5000, 0, 0)
    assert not half.exists()
    for shard in half.parent.glob("*.block"):
        os.utime(shard, (2**32, 2**32))
    features = listed["bytes"]
    gc.collect()  # this process reads the banks of the run until they are collected
    freed = json.loads(call("cache", "clear", "--limit", f"{features + bank['bytes']}B", "--json"))
    assert freed["features"] == 0, "banks are removed first"
    assert [each["name"] for each in banks()] == [bank["name"]], "the most recently used one is kept"
    assert json.loads(call("cache", "clear", "--backbone", "another", "--json"))["freed"] == 0
    assert json.loads(call("cache", "clear", "--json"))["banks"] == bank["bytes"]
    assert banks() == []
    call(*discover(tmp_path / "again", "--set", "views=3"))
    assert results(tmp_path / "again") == results(tmp_path / "run")


def banks():
    return json.loads(call("cache", "list", "--json"))["banks"]["banks"]


def test_clearing_an_unknown_backbone_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    done = invoke(["cache", "clear", "--backbone", "dinov3"])
    assert "Nothing is kept of dinov3; `justright cache list` has the names." in done.stderr
