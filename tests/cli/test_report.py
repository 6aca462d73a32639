from __future__ import annotations

import json

import pytest
from tests.cli.conftest import invoke
from tests.made_runs import make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    made = [make_run(root / name, per_class=8, n_wrong=n) for name, n in (("beta", 5), ("none", 30))]
    made[1].save_about(dict(made[1].about) | {"selector": "none"})
    return root


def run(*words: object):
    return invoke(["report", *words], exit_code=None)


def test_one_run_gets_its_page(runs):
    done = run(runs / "beta")
    assert done.exit_code == 0, done.output
    assert "All " in done.stdout
    assert (runs / "beta" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_several_runs_are_compared(runs, tmp_path):
    done = run(runs / "beta", runs / "none", "--out", tmp_path / "compare.html", "--json")
    assert done.exit_code == 0, done.output
    message = json.loads(done.stdout)
    assert message["written"] == str(tmp_path / "compare.html")
    assert message["bytes"] == (tmp_path / "compare.html").stat().st_size
    assert set(message["runs"]) == {"beta", "none"}
    assert message["changes"]["beta"][0]["group"] == "all"
    assert "verdict" in message["changes"]["beta"][0]
    [pair] = message["agreement"]
    assert pair["runs"] == ["beta", "none"]
    assert 0 < pair["share_in_matching_categories"] <= 1


def test_json_has_key_figures(runs, tmp_path):
    message = json.loads(run(runs / "beta", "--out", tmp_path / "r.html", "--json").stdout)
    assert message["k_source"] == "given"
    assert message["scores"]["all"] == json.loads((runs / "beta" / "scores.json").read_text())["all"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(("nowhere",), "does not exist"), ((".",), "does not hold a run"), ((), "Missing argument")],
)
def test_folder_without_a_run_raises(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.exit_code in (1, 2)
    assert message in done.output


def test_unwritable_output_raises(runs, tmp_path):
    (tmp_path / "file").write_text("")
    done = run(runs / "beta", runs / "none", "--out", tmp_path / "file" / "page.html")
    assert done.exit_code == 1
    assert "name another place" in done.output
