"""One home for checkpoints and caches, where the environment says."""

from __future__ import annotations

from pathlib import Path

from justright.features.home import home


def test_the_environment_says_where(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    assert home() == tmp_path


def test_without_it_the_cache_of_the_user_is_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert home() == tmp_path / ".cache" / "justright"
