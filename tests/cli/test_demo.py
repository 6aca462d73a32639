from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from justright.benchmark.problems import problem_of
from justright.cli import demo as demo_module
from justright.cli import main
from justright.cli.demo import demo_suite
from justright.data.catalog.glyphs import classes_of
from justright.discovery.methods import METHODS
from justright.features import automatic, feature_network
from justright.report import drawing, feature_map
from justright.runs.problem import OWN
from justright.runs.run_folder import RunFolder


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Make both suites tiny: one alphabet, a similar and a dissimilar set as pool, and two steps of training."""
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    # tests/report draws figures, and maps by t-SNE
    monkeypatch.setattr(drawing, "to_svg", lambda figure: "<svg></svg>")
    monkeypatch.setattr(feature_map, "_neighbors", lambda x, seed: x[:, :2])
    read = demo_module.read_suite

    def read_tiny(name):
        suite = read(name)
        pool = {script: f"glyphs:per_class=1,scripts={script}" for script in ("greek", "box-drawing")}
        short = {"n_epochs": 1, "n_steps": 2}
        problem = replace(suite.problems[0], target="glyphs:per_class=3,scripts=georgian", pool=pool, settings=short)
        names = ("own", "everything", "beta", "everything-as-rivals", "kmeans: own", "gcd: own", "gcd: everything")
        settings = tuple(setting for setting in suite.settings if setting.name in names)
        return replace(suite, problems=(problem,), settings=settings, seeds=suite.seeds[:2])

    monkeypatch.setattr(demo_module, "read_suite", read_tiny)


def test_the_problem_has_old_and_new_characters_and_a_pool_of_many_scripts():
    suite = demo_suite(full=False, seed=3)
    problem = problem_of(suite.problems[0])
    assert {origin.dataset for origin in problem.pool.origins} == {OWN, *suite.problems[0].pool}
    labels, is_old = problem.truth.open_for_evaluation()
    assert 0.2 < is_old.mean() < 0.5
    assert len(set(labels.tolist())) == problem.n_target_classes == 79
    other = problem_of(demo_suite(full=False, seed=4).problems[0])
    assert other.target.paths != problem.target.paths, "another seed draws other characters"


def test_settings_differ_in_selector_and_role_alone():
    suite = demo_suite(full=False, seed=3)
    specs = [suite.spec(setting, 3, n_target=79).to_json() for setting in suite.settings]
    assert [spec.pop("selector") for spec in specs] == ["own", "none", "cui", "bins", "beta", "none"]
    assert [spec.pop("pool_role") for spec in specs] == ["guide"] * 5 + ["rival"]
    assert all(spec == specs[0] for spec in specs)


def test_the_long_demo_has_every_method_and_four_labeled_sets():
    suite = demo_suite(full=True, seed=0)
    assert {setting.method for setting in suite.settings} == set(METHODS)
    first, *others = suite.problems
    assert len(list(suite.runs_of(first))) == len(METHODS) * 6 * 3
    for described in others:
        problem = problem_of(described)
        assert len(problem.pool.origins) == 40
        assert problem.own_classes == ()
        assert not problem.truth.open_for_evaluation()[1].any()
        assert len(list(suite.runs_of(described))) == 3


@pytest.mark.usefixtures("tiny")
def test_the_demo_prints_scores_and_writes_pages(tmp_path):
    out = tmp_path / "out"
    # with seed 11 each of the 20 old classes has a labeled image, though a class has only three
    done = CliRunner().invoke(main, ["demo", "--seed", "11", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert list(result["scores"]) == ["own", "everything", "beta", "everything-as-rivals"]
    assert result["categories"]["true"] == 41
    assert result["kept"]["own"] == {OWN: 20}
    pool = {name: len(classes_of(name)) for name in ("greek", "box-drawing")}
    assert result["kept"]["everything"] == {OWN: 20} | pool
    assert (out / "comparison.html").exists()
    assert "As a guide" in result["verdict"]
    assert "as rivals" in result["verdict"]
    runs = out / "runs" / "characters"
    assert (runs / "beta-11" / "report.html").exists()
    assert RunFolder.open(runs / "own-11").about["n_categories"] == 41
    assert RunFolder.open(runs / "everything-as-rivals-11").about["n_categories"] > 41


@pytest.mark.usefixtures("tiny")
def test_the_long_demo_runs_every_setting(tmp_path):
    done = CliRunner().invoke(main, ["demo", "--full", "--seed", "11", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["problems"]
    assert [(row["setting"], row["runs"]) for row in rows] == [
        ("kmeans: own", 2),
        ("gcd: own", 2),
        ("gcd: everything", 2),
    ]


def test_a_resumed_demo_keeps_its_device(tmp_path, monkeypatch):
    devices = []
    monkeypatch.setattr(automatic, "choose_device", lambda: automatic.Choice("abacus", "it was there"))
    monkeypatch.setattr(feature_network, "usable", lambda device: device)
    monkeypatch.setattr(demo_module, "run_suite", lambda suite, out: devices.append(suite.run["device"]) or [])
    for message in ("Device: abacus (it was there).", "Device: cpu (as before)."):
        done = CliRunner().invoke(main, ["demo", "--full", "--out", str(tmp_path / "out")])
        assert done.exit_code == 0, done.output
        assert message in done.stderr
        RunFolder(tmp_path / "out" / "runs" / "own-0").save_about({"spec": {"device": "cpu"}})
    assert devices == ["abacus", "cpu"]
