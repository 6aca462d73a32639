from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from tests.cli.conftest import invoke
from tests.made_runs import make_run

from justright.data import open_images
from justright.review.actions import Keep, Request
from justright.review.open_review import OpenReview
from justright.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = make_run(tmp_path_factory.mktemp("cli") / "run", per_class=8).path
    OpenReview(RunFolder.open(path)).act(Request(id="ab" * 8, base=0, reviewer="anna", action=Keep(cluster=15)))
    return path


def call(*arguments):
    return invoke(["review", *arguments], exit_code=None)


@pytest.mark.parametrize(
    ("name", "form", "written"),
    [
        ("a.csv", None, "csv"),
        ("a.parquet", None, "parquet"),
        ("a", None, "folders"),
        ("l.parquet", "labeled", "labeled"),
    ],
)
def test_labels_are_exported_without_a_server(run, tmp_path, name, form, written):
    result = call(run, "--export", tmp_path / name, *(["--as", form] if form else []), "--json")
    assert result.exit_code == 0, result.output
    message = json.loads(result.output)
    assert message["as"] == written
    assert (tmp_path / name).exists()
    assert message["images"] > 0


def test_labeled_set_takes_a_name(run, tmp_path):
    assert call(run, "--export", tmp_path / "l.parquet", "--as", "labeled", "--name", "mine").exit_code == 0
    assert open_images(tmp_path / "l.parquet").datasets == ["mine"]


def test_export_does_not_change_the_run(run, tmp_path):
    before = sorted(run.rglob("*"))
    assert call(run, "--export", tmp_path / "a.csv").exit_code == 0
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--all"], "need --export"),
        (["--export", "x.odd"], "Add --as"),
        (["--export", "x.csv", "--as", "labeled"], "a name that ends in .parquet"),
        (["--export", "x.csv", "--copy"], "--copy needs --as folders, not csv"),
        (["--export", "x.csv", "--with-known"], "--with-known needs --as folders or labeled, not csv"),
        (["--reviewer", "a\nb"], "--reviewer"),
        (["--host", "192.0.2.1", "--port", "0"], "cannot listen"),
        (["--host", "", "--port", "0"], "the host is empty"),
    ],
)
def test_invalid_options_are_explained(run, arguments, message):
    result = call(run, *arguments)
    assert result.exit_code != 0
    assert message in result.output


def test_folder_without_a_run_raises(tmp_path):
    assert "does not hold a run" in call(tmp_path).output


def test_server_prints_its_address_and_stops_cleanly(run):
    command = [sys.executable, "-m", "justright", "review", str(run), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        text = "".join(process.stdout.readline() for _ in range(4))
        message = json.loads(text)
        assert message["url"].startswith(f"http://127.0.0.1:{message['port']}/")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert "Traceback" not in errors


def test_host_that_others_can_reach_warns(run):
    command = [sys.executable, "-m", "justright", "review", str(run), "--port", "0", "--host", "0.0.0.0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert "can be reached from other machines" in errors


def test_export_page_names_existing_options():
    panels = resources.files("justright.review").joinpath("static", "panels.js").read_text(encoding="utf-8")
    assert "for --labeled of the next run" in panels
    assert "pool" not in panels
