from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.benchmark.test_suite import TINY

from justright.cli import main


def test_a_suite_is_run_and_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "tiny.toml").write_text(TINY)
    asked = [str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "out")]
    ran = CliRunner().invoke(main, ["benchmark", "run", *asked, "--only", "digits", "--json"])
    assert ran.exit_code == 0, ran.output
    assert [row["setting"] for row in json.loads(ran.stdout)["rows"]] == ["own"]
    shown = CliRunner().invoke(main, ["benchmark", "show", *asked, "--figure", str(tmp_path / "suite.svg")])
    assert shown.exit_code == 0, shown.output
    assert "2 runs" in shown.stdout
    assert "<svg" in (tmp_path / "suite.svg").read_text()


def test_suites_are_listed():
    done = CliRunner().invoke(main, ["benchmark", "list", "--json"])
    assert done.exit_code == 0, done.output
    assert {"selection", "selection-photos"} <= {row["name"] for row in json.loads(done.stdout)}


def test_an_unknown_suite_is_an_error_without_a_traceback(tmp_path):
    done = CliRunner().invoke(main, ["benchmark", "show", "tab99", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "no suite 'tab99'" in done.output
    assert "Traceback" not in done.output


@pytest.fixture
def counted(tmp_path):
    """Results of Tab. A9, which needs no run."""
    words = ["benchmark", "run", "taba9", "--profile", "glyphs", "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return tmp_path


@pytest.mark.parametrize(
    ("ending", "part"), [("md", "| 60 |"), ("tex", "& 60 &"), ("csv", ",60.00,"), ("html", "<td>60")]
)
def test_a_table_of_the_paper_is_written_in_every_format(counted, ending, part):
    to = counted / f"table.{ending}"
    words = ["benchmark", "show", "taba9", "--profile", "glyphs", "--out", str(counted / "out"), "--to", str(to)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "taba9, cub (here: armenian)" in done.stdout
    assert part in to.read_text()


def test_other_formats_and_profiles_of_other_suites_are_refused(counted):
    for words, said in (
        (["show", "taba9", "--to", str(counted / "table.pdf")], "ends in .md"),
        (["show", "selection", "--profile", "glyphs"], "has no profiles"),
        (["show", "selection", "--to", str(counted / "table.md")], "a table of the paper"),
        (["run", "tab4", "--role", "guide"], "no pool that could be a guide"),
        (["show", "selection"], "--out"),
    ):
        out = [] if words == ["show", "selection"] else ["--out", str(counted / "out")]
        done = CliRunner().invoke(main, ["benchmark", *words, *out])
        assert done.exit_code != 0
        assert said in done.output


def test_what_a_run_takes_is_said_before_it_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("justright.benchmark.suite_costs.suite_costs", lambda *given: f"{len(given[1])} problems")
    monkeypatch.setattr("justright.cli.benchmark.run_suite", lambda *given, **options: [])
    done = CliRunner().invoke(main, ["benchmark", "run", "tab2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "4 problems" in done.stderr
