"""The scripts of examples/, each run on drawn characters as its first line says."""

from __future__ import annotations

import ast
import csv
import json
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from tests.made_runs import make_run

import justright
from justright.cli import main
from justright.data import glyph_set
from justright.data.folder import write_tree
from justright.discovery.methods import METHODS
from justright.review.findings import findings
from justright.runs.run_folder import RunFolder
from justright.selection import SELECTORS

EXAMPLES = Path(__file__).parents[1] / "examples"
LIST = (EXAMPLES.parent / "docs" / "start" / "examples.md").read_text(encoding="utf-8")


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
def test_example_is_short_and_listed(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert re.match(rf'""".+: python examples/{path.stem}\.py', text)
    assert f"examples/{path.stem}.py" in LIST


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
        del SELECTORS["middle"]


def test_the_commands_know_an_added_method(folders, tmp_path):
    load("your_method")
    try:
        sources = ["--labeled", folders / "labeled", "--target", folders / "photos", "--backbone", "glyph_vit"]
        how = ["--method", "anchored", "--epochs", 1, "--set", "pull=0.5", "--k", 8, "--no-report"]
        call("discover", *sources, *how, "--out", tmp_path / "run")
        assert RunFolder(tmp_path / "run").about["config"]["pull"] == 0.5
    finally:
        del METHODS["anchored"]


def test_a_loop_of_ones_own_takes_our_weights(start, folders, capsys):
    start("your_own_loop", folders / "pool", folders / "photos", "glyph_vit", 60, 3)
    printed = capsys.readouterr().out
    losses = [float(value) for value in re.findall(r"loss ([\d.]+)", printed)]
    assert losses[-1] < losses[0]
    assert "18 photos in clusters of" in printed


class FakeFiftyOne:
    """What the example needs of FiftyOne: reads and writes the folder as its documentation says, and one person."""

    types = SimpleNamespace(FiftyOneImageClassificationDataset="image classification")

    def __init__(self):
        self.Dataset, self.path, self.labels = self, None, {}

    def from_dir(self, dataset_dir, dataset_type, label_field):
        self.path, value = Path(dataset_dir), json.loads((Path(dataset_dir) / "labels.json").read_text())
        files = {file.relative_to(self.path / "data").with_suffix("").as_posix() for file in self.path.rglob("*.png")}
        assert files == set(value["labels"])
        self.labels = {key: value["classes"][each["label"]] for key, each in value["labels"].items()}
        return self

    def sort_by(self, field):
        return self

    def launch_app(self, dataset, view):
        first = next(iter(self.labels))
        self.labels[first] = next(label for label in self.labels.values() if label != self.labels[first])
        return SimpleNamespace(wait=lambda: None)

    def export(self, export_dir, dataset_type, label_field, rel_dir, export_media):
        assert rel_dir == str(self.path / "data")
        Path(export_dir).mkdir()
        (Path(export_dir) / "labels.json").write_text(json.dumps({"classes": None, "labels": self.labels}))


def test_what_fiftyone_corrects_is_in_the_review(start, tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "run", per_class=8).path
    monkeypatch.setitem(sys.modules, "fiftyone", FakeFiftyOne())
    start("fiftyone", run, tmp_path / "in-fiftyone", "anna")
    assert "1 of 180 images have another category now" in capsys.readouterr().out
    assert findings(RunFolder.open(run)).reviewers == ("anna",)


def test_the_example_says_what_to_install(start, monkeypatch):
    monkeypatch.setitem(sys.modules, "fiftyone", None)
    with pytest.raises(SystemExit, match="pip install fiftyone"):
        start("fiftyone")


def call(*words: object) -> str:
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout
