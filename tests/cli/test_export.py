"""`justright export`, and `justright review --import`."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import invoke
from tests.made_runs import make_run

from justright.review.formats import FORMATS
from justright.review.open_review import OpenReview
from justright.runs.run_folder import RunFolder

NAME = "alphabets/greek/u0393-greek-capital-letter-gamma/0.png"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("cli") / "run", per_class=8).path


def call(*words):
    return invoke(words, exit_code=None)


def test_help_lists_every_format():
    text = call("export", "--help").output
    assert all(name in text for name in FORMATS)


def test_export_explains_how_the_tool_gets_the_images(run, tmp_path):
    done = call("export", run, "--to", "coco", "--out", tmp_path / "coco")
    assert done.exit_code == 0, done.output
    assert "180 images, 180 with a label, as coco" in done.output
    assert str(tmp_path / "coco" / "images" / "default") in done.output
    value = json.loads(call("export", run, "--to", "csv", "--out", tmp_path / "l.csv", "--json").output)
    assert (value["images"], value["to"]) == (180, "csv")


def test_export_does_not_change_a_run_without_a_review(run, tmp_path):
    before = sorted(run.rglob("*"))
    assert call("export", run, "--to", "csv", "--out", tmp_path / "l.csv").exit_code == 0
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "csv", "--out", "labels"], "does not end in .csv"),
        (["--to", "csv", "--out", "l.csv", "--copy"], "holds no images"),
        (["--to", "yolo", "--out", "out"], "'yolo' is not one of"),
        (["--to", "coco", "--out", "{run}"], "is not empty"),
    ],
)
def test_invalid_exports_raise(run, words, message):
    done = call("export", run, *[word.format(run=run) for word in words])
    assert done.exit_code != 0
    assert message in done.output


def test_import_prints_what_changed_and_records_the_reviewer(tmp_path):
    run = make_run(tmp_path / "run", per_class=8).path
    (tmp_path / "one.csv").write_text(f"path,category\n{NAME},gamma\n")
    done = call("review", run, "--import", tmp_path / "one.csv", "--reviewer", "anna", "--json")
    assert done.exit_code == 0, done.output
    value = json.loads(done.output)
    assert (value["from"], value["n_labels"], value["n_moved"], value["named"]) == ("csv", 1, 1, ["gamma"])
    (entry,) = OpenReview(RunFolder.open(run)).state.entries
    assert (entry.line.by, entry.line.seq) == ("anna", value["action"])
    again = call("review", run, "--import", tmp_path / "one.csv", "--from", "csv")
    assert "nothing to correct" in again.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "csv"], "--from needs --import"),
        (["--import", "{file}", "--export", "x.csv"], "exclude each other"),
        (["--import", "{file}", "--reviewer", "a\nb"], "--reviewer"),
        (["--import", "{file}", "--from", "coco"], "cannot be read"),
        (["--import", "gone.csv"], "does not exist"),
        (["--import", "{odd}"], "is unclear"),
    ],
)
def test_invalid_imports_raise(run, tmp_path, words, message):
    (tmp_path / "one.csv").write_text(f"path,category\n{NAME},gamma\n")
    (tmp_path / "one.txt").write_text("")
    done = call("review", run, *[word.format(file=tmp_path / "one.csv", odd=tmp_path / "one.txt") for word in words])
    assert done.exit_code != 0
    assert message in done.output
    assert not (run / "review").exists()


def test_import_without_a_user_name_needs_a_reviewer(run, tmp_path, monkeypatch):
    def nobody():
        raise KeyError("no name")

    monkeypatch.setattr("getpass.getuser", nobody)
    (tmp_path / "one.csv").write_text(f"path,category\n{NAME},gamma\n")
    assert "Add --reviewer" in call("review", run, "--import", tmp_path / "one.csv").output
