from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.cli.conftest import invoke

from justright.benchmark.claims import OUTCOMES
from justright.benchmark.results import append_result, fingerprint
from justright.benchmark.suite import read_suite


@pytest.fixture
def counted(tmp_path):
    """Results of Tab. A9, which needs no run."""
    words = ["benchmark", "run", "taba9", "--profile", "glyphs", "--out", str(tmp_path / "out"), "--json"]
    invoke(words)
    return tmp_path


@pytest.mark.parametrize(
    ("ending", "part"), [("md", "| 60 |"), ("tex", "& 60 &"), ("csv", ",60.00,"), ("html", "<td>60")]
)
def test_paper_table_is_written_in_every_format(counted, ending, part):
    to = counted / f"table.{ending}"
    words = ["benchmark", "show", "taba9", "--profile", "glyphs", "--out", str(counted / "out"), "--to", str(to)]
    done = invoke(words)
    assert "cub (here: armenian)" in done.stdout
    assert part in to.read_text()


def test_invalid_formats_profiles_and_parts_raise(counted):
    for words, message in (
        (["show", "taba9", "--to", str(counted / "table.pdf")], "ends in .md"),
        (["show", "selection", "--profile", "glyphs"], "has no profiles"),
        (["show", "selection", "--to", str(counted / "table.html")], "ends in .md, .tex, .csv"),
        (["show", "selection", "--part", "nowhere"], "one of choose, judge"),
        (["show", "selection", "--figure", str(counted / "figure.pdf")], "ends in .svg"),
        (["run", "tab4", "--role", "guide"], "no pool that could be a guide"),
        (["show", "selection"], "--out"),
        (["run", "fig3", "--role", "guide", "--only", "georgian"], "no problem 'georgian'"),
    ):
        out = [] if words == ["show", "selection"] else ["--out", str(counted / "out")]
        done = invoke(["benchmark", *words, *out], exit_code=None)
        assert done.exit_code != 0
        assert message in done.output


RESULTS = Path(__file__).parents[2] / "docs" / "results" / "paper-glyphs"


def shown(*words):
    return invoke(["benchmark", "show", *words], exit_code=None)


def test_show_uses_the_profile_with_results(tmp_path):
    suite = read_suite("taba9", "full")
    line = {"problem": "cub, own labels", "part": "", "setting": "kmeans: none", "seed": 0, "labeled_images": 1498}
    first = next(run for run in suite.runs_of(suite.problems[0]))
    line["print"] = fingerprint(suite, suite.problems[0], *first)
    append_result(tmp_path / "results.jsonl", line)
    done = shown("taba9", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "1,498" in done.stdout


def test_lines_of_other_settings_are_reported():
    done = shown("tab2", "--out", str(RESULTS), "--backbone", "dino_vitb16")
    n_lines = len((RESULTS / "results.jsonl").read_text().splitlines())
    assert f"None of the {n_lines:,} lines" in done.output


def test_json_has_numbers_of_table_and_claims():
    done = json.loads(shown("fig3", "--out", str(RESULTS), "--json").stdout)
    assert {each["verdict"] for each in done["claims"]} <= {*OUTCOMES, "undecided", "not run"}
    assert len(done["claims"][0]["difference"]) == 3
    assert {each["group"] for each in done["table"]} == {"new", "new_as_old", "new_as_new"}


@pytest.mark.parametrize(("name", "message"), [("fig3", "taken for an Old class"), ("tab1", "points of New")])
def test_paper_figure_is_drawn(tmp_path, name, message):
    done = shown(name, "--out", str(RESULTS), "--figure", str(tmp_path / "figure.svg"))
    assert done.exit_code == 0, done.output
    assert message in (tmp_path / "figure.svg").read_text()


def test_paper_table_rejects_part_baseline_and_empty_figure(tmp_path):
    for words in (["--part", "judge"], ["--baseline", "beta"]):
        done = shown("tab2", "--out", str(RESULTS), *words)
        assert done.exit_code == 2
        assert "not for tables of the paper" in done.output
    done = shown("fig1", "--out", str(tmp_path), "--figure", str(tmp_path / "fig1.svg"))
    assert "no run of fig1" in done.output


def test_csv_has_the_verdicts_on_the_claims(tmp_path):
    done = shown("tab2", "--out", str(RESULTS), "--to", str(tmp_path / "tab2.csv"))
    assert done.exit_code == 0, done.output
    claims = [row for row in csv.DictReader((tmp_path / "tab2.csv").read_text().splitlines()) if row["claim"]]
    assert len({row["claim"] for row in claims}) == len(read_suite("tab2").claims)
    assert {"", "gcd", "xcon", "simgcd"} <= {row["method"] for row in claims}, "all together, and each alone"
    assert {row["verdict"] for row in claims} <= {*OUTCOMES, "undecided", "not run"}


def test_plain_suite_is_shown_and_written_problem_by_problem(tmp_path):
    words = ("training", "--out", str(RESULTS.parent / "training"))
    done = shown(*words, "--to", str(tmp_path / "training.md"))
    assert done.exit_code == 0, done.output
    message = (tmp_path / "training.md").read_text()
    assert "**currency-nko (judge)**" in message
    assert "| simgcd | 3 | 78.2 ±3.4 | 80.2 ±2.0 | 77.2 ±4.1 |" in message, "as docs/research/training.md has it"
    assert "currency-nko (judge)" in done.stdout
    shown(*words, "--to", str(tmp_path / "training.csv"))
    rows = list(csv.DictReader((tmp_path / "training.csv").read_text().splitlines()))
    assert {row["problem"] for row in rows} == {each.name for each in read_suite("training").problems}
    result = json.loads(shown(*words, "--json").stdout)["problems"]
    assert len(result) == len(rows)
    assert result[0]["categories in use"] <= result[0]["categories"]
