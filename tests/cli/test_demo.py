from __future__ import annotations

import json
import math
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from justright.benchmark import demo as experiments
from justright.benchmark.demo import OWN, glyph_problem
from justright.cli import main
from justright.cli.demo import rows_over_seeds
from justright.data.catalog.glyphs import classes_of
from justright.features import automatic, feature_network
from justright.report import drawing, feature_map
from justright.report.compared_runs import mean_and_spread
from justright.runs.run_folder import RunFolder


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(experiments, "N_STEPS", 2)
    for name in ("N_EPOCHS", "FULL_EPOCHS"):
        monkeypatch.setattr(experiments, name, 1)
    # tests/report draws figures, and maps by t-SNE
    monkeypatch.setattr(drawing, "to_svg", lambda figure: "<svg></svg>")
    monkeypatch.setattr(feature_map, "_neighbors", lambda x, seed: x[:, :2])
    # tests/demo draws all of them: one alphabet, a pool much like it, and one nothing like it
    monkeypatch.setattr(experiments, "TARGET_SCRIPTS", ("georgian",))
    monkeypatch.setattr(experiments, "POOL_SCRIPTS", ("greek", "box-drawing"))


def test_the_demo_runs_and_says_what_it_found(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "glyph_problem", lambda seed: glyph_problem(3, pool_per_class=1, seed=seed))
    # with seed 11 so few images a class still leave each of the 20 old ones a label
    names = ("own", "everything", "beta", "everything-as-rivals")  # every role
    monkeypatch.setattr(experiments, "SETTINGS", {name: experiments.SETTINGS[name] for name in names})
    done = CliRunner().invoke(main, ["demo", "--seed", "11", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["scores"]) == list(names)
    assert found["categories"]["true"] == 41
    assert found["kept"]["own"] == {OWN: 20}
    assert found["kept"]["everything"] == {OWN: 20} | {name: len(classes_of(name)) for name in experiments.POOL_SCRIPTS}
    assert (tmp_path / "out" / "comparison.html").exists()
    assert (tmp_path / "out" / "beta" / "report.html").exists()
    assert "As a guide" in found["verdict"]
    assert "as rivals" in found["verdict"]
    for setting in ("own", "everything"):
        about = RunFolder.open(tmp_path / "out" / setting).about
        assert about["n_categories"] == 41
    assert RunFolder.open(tmp_path / "out" / "everything-as-rivals").about["n_categories"] > 41


def test_the_device_is_what_works_here_or_what_the_runs_were_begun_on_and_is_said(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(automatic, "choose_device", lambda: automatic.Choice("abacus", "it was there"))
    monkeypatch.setattr(feature_network, "usable", lambda device: device)
    monkeypatch.setattr(experiments, "run_full_demo", lambda out, seed, device: given.append(device) or {})
    for said in ("Device: abacus (it was there).", "Device: cpu (as before)."):
        done = CliRunner().invoke(main, ["demo", "--full", "--out", str(tmp_path / "out")])
        assert done.exit_code == 0, done.output
        assert said in done.stderr
        RunFolder(tmp_path / "out" / "methods" / "own-0").save_about({"spec": {"device": "cpu"}})
    assert given == ["abacus", "cpu"]


def test_the_long_form_runs_every_experiment(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "glyph_problem", lambda seed: glyph_problem(3, pool_per_class=1, seed=seed))
    monkeypatch.setattr(experiments, "METHODS", ("kmeans", "gcd"))
    settings = {name: experiments.SETTINGS[name] for name in ("own", "everything")}
    monkeypatch.setattr(experiments, "SETTINGS", settings)
    monkeypatch.setattr(experiments, "FULL_SEEDS", (0, 1))
    monkeypatch.setattr(experiments, "LABELED_SETS", {"medium": ("lao",)})
    monkeypatch.setattr(experiments, "CLASSES_A_SET", 5)
    done = CliRunner().invoke(main, ["demo", "--full", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found) == ["methods, kmeans", "methods, gcd", "labeled sets"]
    assert len(found["methods, gcd"]["runs"]) == 4
    assert found["methods, gcd"]["changes"], "everything against own, over seeds"
    assert len(found["labeled sets"]["runs"]) == 2


def test_mean_and_spread_are_in_percent():
    assert mean_and_spread([0.5, 0.7]) == "60.0 ± 14.1"
    assert mean_and_spread([0.5]) == "50.0"
    assert mean_and_spread([math.nan, math.nan]) == "-"


def test_a_setting_keeps_its_own_name_over_seeds(tmp_path, monkeypatch):
    scores = {"beta-0": (0.5, 0.6), "beta-1": (0.7, 0.6), "similar-0": (0.4, math.nan)}
    runs = [RunFolder(tmp_path / name) for name in scores]
    for run, (everything, old) in zip(runs, scores.values(), strict=True):
        vars(run)["scores"] = SimpleNamespace(all=everything, old=old, new=everything)
    assert rows_over_seeds(runs) == [
        ("beta", "60.0 ± 14.1", "60.0 ± 0.0", "60.0 ± 14.1"),
        ("similar", "40.0", "-", "40.0"),
    ]
