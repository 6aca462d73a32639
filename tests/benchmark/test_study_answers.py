from __future__ import annotations

import json

import pyarrow as pa
import pytest
from benchmarks.study_answers import by_problem, draw_reliability, main, study, summary, table_of
from tests.made_runs import make_run

from justright.clustering.baselines import BASELINES
from justright.data.parquet import read_parquet, write_parquet


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("greek") / "made-0")


@pytest.fixture(scope="module")
def line(run):
    return study(run.path, "truth.parquet")


def test_line_has_scores_of_all_methods(run, line):
    assert list(line["scores"]) == ["answer", *BASELINES]
    assert line["scores"]["answer"]["all"] == pytest.approx(100 * run.scores.all, abs=0.06)
    assert line["scores"]["answer"]["names"]["all"] <= line["scores"]["answer"]["all"]
    whole = line["calibration"]["all"]
    assert whole["accuracy"] == line["scores"]["answer"]["all"]
    assert (len(whole["bins"]), sum(n for n, *_ in whole["bins"])) == (10, line["n_images"])
    assert {"known", "discovered"} <= set(line["calibration"])
    assert line["interval"]["n"] == line["n_images"]
    assert line["problem"].endswith("/made")


def test_doubts_are_judged_by_the_truth(run, line):
    names = read_parquet(run.path / "truth.parquet")["class_name"].to_pylist()
    cluster = run.predictions.cluster.tolist()

    def most(rows):
        result = [names[row] for row in rows]
        return max(sorted(set(result)), key=result.count)

    expected = {}
    for doubt in run.doubts:
        own = [row for row, each in enumerate(cluster) if each == doubt.category]
        other = [row for row, each in enumerate(cluster) if each == doubt.other]
        if doubt.other is None:
            is_right = most(doubt.rows) != most([row for row in own if row not in doubt.rows])
        else:
            is_right = most(own) == most(other)
        expected[doubt.kind] = {"n": 1, "right": int(is_right)}
    assert line["doubts"] == expected
    assert "Two kinds: " in table_of(line)


def test_method_assignment_and_interval_are_judged_if_present(tmp_path):
    made = make_run(tmp_path / "run")
    names = read_parquet(made.path / "truth.parquet")["class_name"].to_pylist()
    known = [each.name for each in made.predictions.categories if each.kind == "known"]
    number = {name: k for k, name in enumerate([*known, *sorted(set(names) - set(known))])}
    write_parquet(pa.table({"method cluster": [number[name] for name in names]}), made.path / "evidence.parquet")
    n = len(names)
    made.save_about(made.about | {"expected_right": {"low": n - 30, "high": n, "expected": n - 15, "n": n}})
    line = study(made.path, "truth.parquet", problem="greek", with_baselines=False)
    assert list(line["scores"]) == ["answer", "method"]
    assert line["scores"]["method"]["all"] == line["scores"]["method"]["names"]["all"] == 100
    assert line["scores"]["answer"]["all"] < 100
    assert line["interval"]["holds"]
    assert "which holds the" in table_of(line)
    made.save_about(made.about | {"expected_right": {"low": n, "high": n, "expected": n, "n": n}})
    assert not study(made.path, "truth.parquet", with_baselines=False)["interval"]["holds"]


def test_a_problem_is_the_mean_of_its_seeds():
    def line(problem, accuracy, confidence, holds):
        of = {"n": 10, "accuracy": accuracy, "confidence": confidence, "error": 4.0, "auc": 0.7, "bins": []}
        scores = {"all": accuracy, "old": None, "new": accuracy, "names": None}
        simple = {"Ward": scores | {"all": 50.0}, "k-means": scores | {"all": 40.0}}
        result = {"problem": problem, "scores": {"answer": scores} | simple, "calibration": {"all": of, "known": of}}
        return result | {"interval": None if holds is None else {"holds": holds}}

    lines = [line("a", 60.0, 70.0, True), line("a", 70.0, 66.0, False), line("b", 50.0, 56.0, True)]
    problems = by_problem(lines)
    assert problems["a"]["scores"]["answer"]["all"] == 65.0
    assert (problems["a"]["n_seeds"], problems["a"]["holds"]) == (2, 0.5)
    message = summary(lines)
    assert "| answer | 57.5 / - / 57.5 |" in message, "the mean of 65 and 50"
    assert "within 5 points of accuracy, all: 1 of 2" in message
    assert "within 8 points of accuracy, known: 2 of 2" in message
    assert "within 8 points of accuracy, discovered: 0 of 0" in message
    assert "median 4.0, worst 4.0" in message
    assert "holds the number of right images: 1.5 of 2" in message
    assert "Ward: 50.0" in message


def test_command_writes_summarizes_and_draws_lines(run, line, tmp_path, capsys):
    before, figure = tmp_path / "before.jsonl", tmp_path / "reliability.svg"
    main([str(run.path), "--no-baselines", "--lines", str(before)])
    printed = capsys.readouterr().out
    assert json.loads(before.read_text()) == json.loads(printed.splitlines()[-2])
    after = tmp_path / "after.jsonl"
    after.write_text(f"{json.dumps(line)}\n{json.dumps(line | {'seed': 1})}\n")
    main(["--summary", str(before), str(after), "--figure", str(figure)])
    printed = capsys.readouterr().out
    assert "## before" in printed
    assert "| 2 |" in printed.partition("## after")[2]
    assert figure.read_text().startswith("<?xml")
    assert len(draw_reliability({"one": [line]}).axes) == 1
    with pytest.raises(SystemExit):
        main([])
