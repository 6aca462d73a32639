from __future__ import annotations

import json

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
