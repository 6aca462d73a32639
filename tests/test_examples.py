"""The scripts of examples/, each run on drawn characters as its first line says."""

from __future__ import annotations

import ast
import csv
import json
import re
import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import justright
from justright.cli import main
from justright.data import glyph_set
from justright.data.folder import write_tree
from justright.discovery.methods import METHODS
from justright.runs.run_folder import RunFolder
from justright.selection import SELECTORS

EXAMPLES = Path(__file__).parents[1] / "examples"
README = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")


def load(name: str) -> dict[str, object]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.fixture
def start(monkeypatch):
    """A function that starts a script as `python examples/NAME.py WORDS` does."""

    def start(name: str, *words: object) -> None:
        monkeypatch.setattr(sys, "argv", [f"examples/{name}.py", *map(str, words)])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")

    return start


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("examples")
    for name, script in (("labeled", "lao"), ("pool", "greek"), ("photos", "georgian")):
        drawn = glyph_set(per_class=3, scripts=(script,), seed=0)
        write_tree(drawn.of_classes(sorted(drawn.classes)[:6]), root / name)
    return root


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_is_short_and_in_the_readme(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert re.match(rf'""".+: python examples/{path.stem}\.py', text)
    assert f"examples/{path.stem}.py" in README


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.*")), ids=lambda path: path.name)
def test_example_uses_public_names_only(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    used = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "justright":
            used |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names if alias.name.startswith("justright.")}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "justright":
            used.add(f"justright.{node.attr}")
    assert used
    assert used <= {f"justright.{name}" for name in justright.__all__}


def test_a_folder_of_photos_becomes_a_table_of_clusters(start, folders, tmp_path, capsys):
    out = tmp_path / "found.csv"
    start("own_folder", folders / "labeled", folders / "photos", out, "glyph_vit", 2)
    assert "6 known classes" in capsys.readouterr().out
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18
    assert {row["kind"] for row in rows} <= {"known", "discovered"}


def test_both_selectors_weigh_every_class_of_a_pool(start, folders, tmp_path, capsys):
    out = tmp_path / "weights.csv"
    start("choose_labeled_data", folders / "pool", folders / "photos", out, "glyph_vit", 3)
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert all(float(row["beta"]) > 0 and row["why beta"] and row["why bins"] for row in rows)
    assert f"keeps {sum(row['bins'] == '1' for row in rows)} of 6" in capsys.readouterr().out


def test_the_commands_know_an_added_selector(folders, tmp_path):
    load("your_selector")
    try:
        for name in ("pool", "photos"):
            call("extract", folders / name, "--backbone", "glyph_vit", "--out", tmp_path / name)
        words = [tmp_path / "pool", "--target", tmp_path / "photos", "--selector", "middle", "--kept-share", 0.4]
        reasons = [row["reason"] for row in json.loads(call("select", *words, "--json"))["classes"]]
        assert sorted(reasons) == ["in the middle"] * 2 + ["too dissimilar"] * 2 + ["too similar"] * 2
    finally:
        SELECTORS.remove("middle")


def test_the_commands_know_an_added_method(folders, tmp_path):
    load("your_method")
    try:
        sources = ["--labeled", folders / "labeled", "--target", folders / "photos", "--backbone", "glyph_vit"]
        how = ["--method", "anchored", "--epochs", 1, "--set", "pull=0.5", "--k", 8, "--no-report"]
        call("discover", *sources, *how, "--out", tmp_path / "run")
        assert RunFolder(tmp_path / "run").about["config"]["pull"] == 0.5
    finally:
        METHODS.remove("anchored")


def test_a_loop_of_ones_own_takes_our_weights(start, folders, capsys):
    start("your_own_loop", folders / "pool", folders / "photos", "glyph_vit", 60, 3)
    said = capsys.readouterr().out
    losses = [float(value) for value in re.findall(r"loss ([\d.]+)", said)]
    assert losses[-1] < losses[0]
    assert "18 photos in clusters of" in said


def call(*words: object) -> str:
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout
