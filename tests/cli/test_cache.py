from __future__ import annotations

import json

from click.testing import CliRunner

from justright.cli import main


def call(*words: object, exit_code: int = 0) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == exit_code, done.output
    return done.output


def test_the_cache_is_listed_and_cleared(make_tree, tmp_path, monkeypatch):
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
