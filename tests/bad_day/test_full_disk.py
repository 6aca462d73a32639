"""A full disk is one clear error in every command, and with free space the command resumes."""

from __future__ import annotations

import os

import pytest
from tests.bad_day.commands import DIGITS, LETTERS, discover, results, tiny_suite
from tests.bad_day.limited import call_all, call_limited

LIMITS = (0, 100, 3_000, 20_000, 300_000, 2_000_000)
"""Bytes a file may have: the owner's note, run.json, features, index, bank and checkpoint are larger, in turn."""


def is_one_clear_message(ended) -> bool:
    """Whether a command has failed with one clear message."""
    lines = ended.err.rpartition("Error: ")[2].splitlines()
    return (
        ended.code == 1 and len(lines) < 4 and lines[0].endswith(": File too large") and lines[-1].startswith("Try: ")
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run, features of its images, a split, and the home they were made in."""
    folder = tmp_path_factory.mktemp("finished")
    extract = ("extract", "--backbone", "glyph_vit", "--out")
    made = [
        discover(folder / "run", "--target-has-labels"),
        [*extract, folder / "letters", LETTERS],
        [*extract, folder / "digits", DIGITS],
    ]
    for ended in call_all([(folder / "home", None, words) for words in made]):
        assert ended.code == 0, ended.err
    return folder


def test_discover_names_the_unwritable_file_and_resumes(tmp_path, finished):
    run, home = discover(tmp_path / "run", "--target-has-labels"), tmp_path / "home"
    *limited, done = call_all([(home, limit, run) for limit in (*LIMITS, None)])
    for limit, ended in zip(LIMITS, limited, strict=True):
        assert is_one_clear_message(ended), (limit, ended)
        assert "Try: allow larger files" in ended.err or "disk space for the stored views" in ended.err
    named = [ended.err.partition(" cannot be written")[0].rpartition("/")[2] for ended in limited]
    assert named[:2] == [".owner", "run.json"]
    assert named[-2].endswith(".block")
    assert named[-1].endswith(".safetensors")
    assert done.code == 0, done.err
    assert results(tmp_path / "run") == results(finished / "run")
    left = [path for folder in (tmp_path / "run", home) for path in folder.rglob(".*") if path.name != ".in-use"]
    assert left == [], "nothing half-written stays"


COMMANDS = {
    "extract": ("extract", LETTERS, "--backbone", "glyph_vit", "--pooling", "average", "--out", "{out}"),
    "estimate": (
        "estimate",
        "{made}/digits",
        "--target",
        "{made}/letters",
        "--counter",
        "spread",
        "--out",
        "{out}.json",
    ),
    "predict": ("predict", "{made}/run", DIGITS, "--out", "{out}.csv"),
    "report": ("report", "{made}/run", "--out", "{out}.html"),
    "review": ("review", "{made}/run", "--export", "{out}.csv"),
    "export": ("export", "{made}/run", "--to", "coco", "--out", "{out}"),
    "select": ("select", "{made}/digits", "--target", "{made}/letters", "--n-clusters", "5", "--out", "{out}.parquet"),
    "evaluate": (
        *("evaluate", "{made}/run/predictions.parquet", "--truth", "{made}/run/truth.parquet", "--out", "{out}.json"),
    ),
    "audit": ("audit", LETTERS, "--out", "{out}.json"),
    "data glyphs": ("data", "glyphs", "--scripts", "digits", "--per-class", "2", "--out", "{out}"),
    "data split": ("data", "split", LETTERS, "--out", "{out}"),
    "benchmark": ("benchmark", "run", "{suite}", "--only", "digits", "--out", "{out}"),
}


def test_every_command_names_the_unwritable_file_and_resumes(tmp_path, finished):
    def words(name, out):
        named = {"out": tmp_path / out / "result", "made": finished, "suite": tiny_suite(tmp_path)}
        return [word.format(**named) for word in COMMANDS[name]]

    def call(name, out, limit=None):
        return call_limited(finished / "home", limit, *words(name, f"{name}/{out}"))

    for name in COMMANDS:
        limited = call(name, "limited", limit=100)
        assert is_one_clear_message(limited), (name, limited)
        assert half_written(tmp_path, finished / "home") == [], name
        again = call(name, "limited")
        assert again.code == 0, (name, again.err)
        expected = {"result.html": None}
        if name != "report":  # of its page nothing but the name is compared
            assert call(name, "undisturbed").code == 0, name
            expected = written(tmp_path / name / "undisturbed")
        assert written(tmp_path / name / "limited") == expected, name


def half_written(*folders):
    """Temporary files that a command has not deleted."""
    return [path for folder in folders for path in folder.rglob(".*.tmp")]


def written(folder):
    """The files of a result; those of a suite and its runs tell how long it took."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    timed = ("results.jsonl", "run.json", ".html")
    return {name: None if name.endswith(timed) else path.read_bytes() for name, path in files.items()}


def test_demo_names_the_unwritable_file(tmp_path):
    ended = call_limited(tmp_path / "home", 3_000, "demo", "--out", tmp_path / "demo")
    assert is_one_clear_message(ended), ended


@pytest.mark.skipif(os.name != "posix", reason="needs a file where a folder should be")
def test_unwritable_out_or_home_is_one_message(tmp_path):
    (tmp_path / "file").touch()
    for home, out in ((tmp_path / "file", tmp_path / "run"), (tmp_path / "home", tmp_path / "file" / "run")):
        ended = call_limited(home, None, *discover(out))
        assert ended.code == 1
        assert f"{tmp_path / 'file'}" in ended.err.replace("\n", "")
        assert "Not a directory" in ended.err
        assert "Traceback" not in ended.err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder_is_one_message(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o555)
    for home, out in ((tmp_path / "locked", tmp_path / "run"), (tmp_path / "home", tmp_path / "locked" / "run")):
        ended = call_limited(home, None, *discover(out))
        assert ended.code == 1
        assert "Permission denied" in ended.err
        assert "Traceback" not in ended.err
