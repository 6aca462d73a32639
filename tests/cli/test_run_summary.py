from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.made_runs import make_run

from justright.cli.discover import show_result
from justright.cli.terminal import Terminal
from justright.report import run_report
from justright.result import Result
from justright.runs.run_folder import RunFolder


@pytest.fixture
def run(tmp_path) -> RunFolder:
    made = make_run(tmp_path / "run", per_class=8)
    about = {"n_target": 24, "notes": ["one note"], "calibrated_on": "9 images", "pool_role": "guide"}
    made.save_about(dict(made.about) | about | {"request": {"copies left out": 2}})
    return RunFolder.open(made.path)


def test_json_has_every_number(run, capsys):
    show_result(Terminal(as_json=True), Result(run), with_report=False)
    value = json.loads(capsys.readouterr().out)
    kinds = [category.kind for category in run.predictions.categories]
    assert value["categories"] == {"known": kinds.count("known"), "discovered": kinds.count("discovered")}
    assert value["n_categories"] == len(kinds)
    assert value["n_used"] == len(set(run.predictions.cluster.tolist())) <= len(kinds)
    assert value["images"] == len(run.target)
    assert value["scores"]["all"] == run.scores.all
    assert (value["n_target"], value["n_copies"], value["notes"]) == (24, 2, ["one note"])
    names = "predictions.csv", "predictions.parquet", "clusters.csv"
    assert value["written"] == [str(run.path / name) for name in names]
    assert value["expected_right"] == run.about["expected_right"]


def test_empty_category_is_not_in_use(run, capsys, monkeypatch):
    record = run.predictions
    in_two = replace(record, cluster=np.arange(len(record)) % 2)
    monkeypatch.setattr(RunFolder, "predictions", in_two)
    show_result(Terminal(as_json=True), Result(RunFolder.open(run.path)), with_report=False)
    value = json.loads(capsys.readouterr().out)
    assert (value["n_categories"], value["n_used"]) == (len(record.categories), 2)


def test_text_has_counts_and_the_next_step(run, capsys):
    show_result(Terminal(), Result(run), with_report=False)
    message = capsys.readouterr().out
    assert f"{len(run.target)} images of the target" in message
    assert str(run.scores) in message
    assert "Note: one note." in message
    expected = run.about["expected_right"]
    assert f"We expect {expected['low']} to {expected['high']} of {len(run.target)} images to be right" in message
    assert "Confidence rests on 9 images." in message
    assert f"justright review {run.path}" in message


def test_next_command_can_be_copied_and_times_are_verbose(run, capsys, tmp_path):
    folder = tmp_path / "my run"
    run.path.rename(folder)
    for terminal in (Terminal(), Terminal(verbose=True)):
        show_result(terminal, Result(RunFolder.open(folder)), with_report=False)
        text = capsys.readouterr().out
        assert f"justright review '{folder}'" in text
        assert ("Seconds: " in text) == terminal.verbose


def test_report_is_written_if_requested(run, capsys, monkeypatch):
    requested = []
    monkeypatch.setattr(run_report, "write_report", lambda run, out: requested.append(run) or out)
    show_result(Terminal(as_json=True), Result(run))
    assert json.loads(capsys.readouterr().out)["written"][3] == str(run.path / "report.html")
    assert requested == [run]


def test_scores_come_with_backbone_source_of_k_seed_and_interval(run, capsys):
    show_result(Terminal(), Result(run), with_report=False)
    message = " ".join(capsys.readouterr().out.split())
    low, high = run.scores.to_dict()["intervals"]["all"]
    for words in (
        f"K of the target: 24 ({run.about['k_source']})",
        f"Backbone: {run.about['backbone']['name']}",
        f"Seed: {run.about['seed']}",
        f"{100 * low:.1f}",
        f"{100 * high:.1f}",
    ):
        assert words in message
    show_result(Terminal(as_json=True), Result(run), with_report=False)
    value = json.loads(capsys.readouterr().out)
    assert {"n_target", "k_source", "backbone", "seed", "scores"} <= value.keys()
    assert value["scores"]["intervals"]["all"]


def test_answer_of_the_method_has_no_expected_number(run, capsys):
    run.save_about(run.about | {"answer": "method", "expected_right": None})
    show_result(Terminal(), Result(RunFolder.open(run.path)), with_report=False)
    message = capsys.readouterr().out
    assert "expect" not in message
    assert "Confidence rests on 9 images." in message
