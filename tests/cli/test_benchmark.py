from __future__ import annotations

import json

import pytest
from tests.benchmark.test_suite import TINY
from tests.cli.conftest import invoke

from justright.features import automatic


def test_run_then_show(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "tiny.toml").write_text(TINY)
    words = [str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "out")]
    ran = invoke(["benchmark", "run", *words, "--only", "digits", "--json"])
    assert [row["setting"] for row in json.loads(ran.stdout)["rows"]] == ["own"]
    shown = invoke(["benchmark", "show", *words, "--figure", str(tmp_path / "suite.svg")])
    assert "2 runs" in shown.stdout
    assert "<svg" in (tmp_path / "suite.svg").read_text()


def test_suites_are_listed():
    done = invoke(["benchmark", "list", "--json"])
    result = {row["name"]: row for row in json.loads(done.stdout)}
    tables = {*(f"tab{n}" for n in range(1, 7)), *(f"taba{n}" for n in range(1, 10)), "fig1", "fig3"}
    demos = {"demo", "demo-full", "demo-selectors"}
    studies = {"selection", "selection-photos", "training", "training-photos", "decisions", "controls", "doses"}
    controls = {"controls-photos", "tab2-controls", "tab4-controls"}
    assert result.keys() == tables | demos | studies | controls | {"cub", "cub-methods", "cub-vit"}
    assert all(row["about"] and row["problems"] and row["runs"] for row in result.values())
    assert result["taba3"]["about"].startswith("Tab. A3: ")


def test_unknown_suite_shows_no_traceback(tmp_path):
    done = invoke(["benchmark", "show", "tab99", "--out", str(tmp_path)], 1)
    assert "no suite 'tab99'" in done.output


def test_costs_are_printed_before_a_suite_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("justright.cli.benchmark.suite_costs", lambda *given: f"{len(given[1])} problems")
    monkeypatch.setattr("justright.cli.benchmark.run_suite", lambda *given, **options: [])
    done = invoke(["benchmark", "run", "tab2", "--out", str(tmp_path)])
    assert "4 problems" in done.stderr
    assert "Device: " in done.stderr


def every_device_works(monkeypatch):
    monkeypatch.setattr("justright.features.automatic.usable", lambda device: device)


def test_data_option_selects_the_full_profile(tmp_path, monkeypatch):
    given = {}
    every_device_works(monkeypatch)

    def note(suite, out, **options):
        given.update(options, suite=suite, out=out)
        return []

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("justright.cli.benchmark.run_suite", note)
    words = ["benchmark", "run", "tab2", "--data", str(tmp_path), "--backbone", "dino_vitb16", "--json"]
    invoke([*words, "--device", "cuda:0", "--device", "cuda:1"])
    assert (given["suite"].profile, given["suite"].run["backbone"]) == ("full", "dino_vitb16")
    assert given["out"].name == "benchmark-full"
    assert (given["devices"], given["n_jobs"]) == (("cuda:0", "cuda:1"), 2)
    assert {each.is_guide for each in given["suite"].settings} == {False}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ("abacus",)),
        (["--device", "auto", "--device", "cuda:1", "--jobs", "1"], ("abacus", "cuda:1")),
        (["--only", "none of these"], ()),
    ],
    ids=["auto", "in turn", "nothing to do"],
)
def test_device_is_resolved_and_printed_if_runs_are_missing(tmp_path, monkeypatch, words, expected):
    given = {}
    every_device_works(monkeypatch)
    only_here = automatic.Choice("abacus", "it was there")
    monkeypatch.setattr(automatic, "choose_device", lambda: only_here)
    monkeypatch.setattr("justright.cli.benchmark.suite_costs", lambda suite, *more: suite.run["device"])
    monkeypatch.setattr("justright.cli.benchmark.run_suite", lambda suite, out, **options: given.update(options))
    monkeypatch.setattr("justright.cli.benchmark.missing_runs", lambda suite, out, only, data: [] if only else ["one"])
    (tmp_path / "tiny.toml").write_text(TINY)
    done = invoke(["benchmark", "run", str(tmp_path / "tiny.toml"), "--out", str(tmp_path), *words])
    assert (given["devices"], given["n_jobs"]) == (expected, 1)
    message = ["Device: abacus (it was there).", "abacus"] if expected else []
    assert done.stderr.splitlines()[: len(message) + 1] == message


def test_device_of_the_suite_is_used(tmp_path, monkeypatch):
    given = {}
    every_device_works(monkeypatch)
    monkeypatch.setattr("justright.cli.benchmark.run_suite", lambda suite, out, **options: given.update(options))
    (tmp_path / "tiny.toml").write_text(TINY.replace("[run]", '[run]\ndevice = "cuda:1"'))
    words = ["benchmark", "run", str(tmp_path / "tiny.toml"), "--out", str(tmp_path), "--json"]
    invoke(words)
    assert given["devices"] == ("cuda:1",)


def test_unusable_device_raises_before_any_run(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    words = [str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "out"), "--device", "cuda:77"]
    done = invoke(["benchmark", "run", *words], 1)
    assert "the device 'cuda:77' cannot be used" in done.output
    assert not (tmp_path / "out").exists()
