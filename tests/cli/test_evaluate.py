from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.cli.conftest import invoke

from justright.evaluation import Scores, estimate_accuracy, evaluate


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 6, 200)
    y_pred = np.where(rng.random(200) < 0.3, rng.integers(0, 8, 200), y_true)
    predictions, truth, checks = (tmp_path / name for name in ("predictions.csv", "truth.csv", "checks.csv"))
    predictions.write_text("id,cluster\n" + "".join(f"i{i},{k}\n" for i, k in enumerate(y_pred)))
    rows = [f"i{i},{c},{'true' if c < 3 else 'false'}\n" for i, c in enumerate(y_true)]
    truth.write_text("id,label,is_old\n" + "".join(reversed(rows)))
    checks.write_text("id,is_right\n" + "".join(f"i{i},{int(y_true[i] == y_pred[i])}\n" for i in range(40)))
    return predictions, truth, checks, y_true, y_pred


def run(*arguments: object):
    return invoke(["evaluate", *arguments], exit_code=None)


def test_prints_scores_and_a_table_of_errors(files):
    predictions, truth, _, y_true, y_pred = files
    done = run(predictions, "--truth", truth)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == str(evaluate(y_true, y_pred, y_true < 3))
    assert "new as old" in done.stdout


def test_writes_requested_files(files, tmp_path):
    predictions, truth, *_ = files
    out, errors, confusion = tmp_path / "scores.json", tmp_path / "errors.svg", tmp_path / "confusion.svg"
    done = run(predictions, "--truth", truth, "--json", "--out", out, "--errors", errors, "--confusion", confusion)
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert value["scores"] == Scores.load(out).to_dict()
    assert value["errors"]["n_images"] == 200
    assert ET.parse(errors).getroot().tag.endswith("svg")
    assert ET.parse(confusion).getroot().tag.endswith("svg")


def test_checked_sample_replaces_the_truth(files):
    predictions, _, checks, y_true, y_pred = files
    expected = estimate_accuracy(np.arange(40), (y_true == y_pred)[:40], 200)
    assert run(predictions, "--checked", checks).stdout.strip() == str(expected)
    assert json.loads(run(predictions, "--checked", checks, "--json").stdout) == expected.to_dict()
    assert run(predictions, "--checked", checks, "--by-cluster").exit_code == 0


def test_user_errors_show_one_message(files, tmp_path):
    predictions, truth, checks, *_ = files
    assert "needs --checked" in run(predictions, "--truth", truth, "--by-cluster").output
    assert "--truth or --checked" in run(predictions).output
    assert "need --truth" in run(predictions, "--checked", checks, "--out", tmp_path / "s.json").output
    assert "ends in .svg" in run(predictions, "--truth", truth, "--errors", tmp_path / "e.png").output
    short = tmp_path / "short.csv"
    short.write_text("id,label,is_old\ni0,1,true\n")
    done = run(predictions, "--truth", short)
    assert done.exit_code == 1
    assert "199 of 200 images" in done.output


def test_images_with_given_labels_are_not_scored(tmp_path):
    (tmp_path / "p.csv").write_text("path,category,source\na,cat,given\nb,cat,predicted\nc,new-001,predicted\n")
    (tmp_path / "t.csv").write_text("path,class_name,is_old\na,dog,1\nb,cat,1\nc,emu,0\n")
    done = invoke(["evaluate", str(tmp_path / "p.csv"), "--truth", str(tmp_path / "t.csv")])
    assert "1 images were labeled before the run" in done.stderr
    assert "All 100.0" in done.output
