"""Fixtures for several commands: drawn letters, split by the GCD protocol, and a run on them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.remembered_maps import remember_maps

from justright.cli import main


@pytest.fixture(scope="session", autouse=True)
def maps():
    yield from remember_maps()


@pytest.fixture(scope="session")
def split(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    for args in (
        ["data", "glyphs", "--out", str(folder / "hebrew"), "--scripts", "hebrew", "--per-class", "8"],
        ["data", "glyphs", "--out", str(folder / "italic"), "--scripts", "old-italic", "--per-class", "3"],
        ["data", "split", str(folder / "hebrew"), "--out", str(folder / "split")],
    ):
        invoke(args)
    return folder


@pytest.fixture(scope="session")
def run(split, tmp_path_factory):
    """The folder and the JSON of a finished run of `justright discover`."""
    out = tmp_path_factory.mktemp("run") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.getbasetemp() / "home"))
        done = invoke([*discover_words(split, out), "--pool", str(split / "italic"), "--json"])
    return out, json.loads(done.stdout)


def invoke(words, exit_code=0):
    """Call the command line; check that every error is reported as a message, and the exit code; None allows any."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert isinstance(done.exception, SystemExit | None), repr(done.exception)
    assert exit_code in (None, done.exit_code), done.output
    return done


def discover_words(split, out) -> list[str]:
    part = split / "split"
    return [
        *("discover", "--labeled", str(part / "labeled.parquet"), "--target", str(part / "target.parquet")),
        *("--truth", str(part / "truth.parquet"), "--backbone", "glyph_vit", "--k", "22", "--epochs", "2"),
        *("--selector", "beta", "--domain", "affine", "--set", "views=2", "--set", "batch_size=32", "--out", str(out)),
    ]


@pytest.fixture
def home(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.getbasetemp() / "home"))
