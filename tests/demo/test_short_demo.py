from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from justright.benchmark import demo, full_demo
from justright.cli import main
from justright.data.catalog.glyphs import classes_of
from justright.demo.full_demo import CLASSES_A_SET, LABELED_SETS, with_labeled_set
from justright.demo.glyph_problem import OWN, POOL_SCRIPTS, glyph_problem
from justright.runs.run_folder import RunFolder


def test_the_problem_has_old_and_new_characters_and_a_pool_of_many_scripts():
    problem = glyph_problem(per_class=12, pool_per_class=1)
    assert {origin.dataset for origin in problem.pool.origins} == {OWN, *POOL_SCRIPTS}
    assert set(problem.target.labels.tolist()) == {-1}
    labels, is_old = problem.truth.open_for_evaluation()
    assert 0.2 < is_old.mean() < 0.5
    assert len(set(labels.tolist())) == problem.n_target_classes
    old = {problem.pool.origins[label].label for label in problem.own_classes}
    assert old == set(labels[is_old].tolist())


def test_the_demo_runs_and_says_what_it_found(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(demo, "glyph_problem", lambda seed: glyph_problem(per_class=6, pool_per_class=2, seed=seed))
    monkeypatch.setattr(demo, "N_EPOCHS", 1)
    monkeypatch.setattr(demo, "N_STEPS", 2)
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["scores"]) == list(demo.SETTINGS)
    assert found["categories"]["true"] == 79
    assert found["kept"]["own"] == {OWN: 39}
    assert found["kept"]["everything"] == {OWN: 39} | {name: len(classes_of(name)) for name in POOL_SCRIPTS}
    assert (tmp_path / "out" / "comparison.html").exists()
    assert (tmp_path / "out" / "beta" / "report.html").exists()
    assert "As a guide" in found["verdict"]
    assert "as rivals" in found["verdict"]
    for setting in ("own", "everything"):
        about = RunFolder.open(tmp_path / "out" / setting).about
        assert about["n_categories"] == 79
    assert RunFolder.open(tmp_path / "out" / "everything-as-rivals").about["n_categories"] > 79


def test_the_long_form_runs_every_experiment(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(
        full_demo, "glyph_problem", lambda seed: glyph_problem(per_class=6, pool_per_class=1, seed=seed)
    )
    monkeypatch.setattr(full_demo, "METHODS", ("kmeans", "gcd"))
    monkeypatch.setattr(full_demo, "SETTINGS", ("own", "cui"))
    monkeypatch.setattr(full_demo, "SEEDS", (0, 1))
    monkeypatch.setattr(full_demo, "N_EPOCHS", 1)
    monkeypatch.setattr(full_demo, "LABELED_SETS", {"similar": ("greek", "cyrillic"), "medium": ("arabic", "lao")})
    done = CliRunner().invoke(main, ["demo", "--full", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found) == ["methods, kmeans", "methods, gcd", "labeled sets"]
    assert len(found["methods, gcd"]["runs"]) == 4
    assert found["methods, gcd"]["changes"], "cui against own, over seeds"
    assert len(found["labeled sets"]["runs"]) == 4


@pytest.mark.parametrize("name", LABELED_SETS)
def test_labeled_sets_have_one_size_and_the_whole_target_is_new_to_them(name):
    problem = glyph_problem(per_class=2, pool_per_class=1)
    other = with_labeled_set(problem, LABELED_SETS[name])
    assert len(other.pool.origins) == CLASSES_A_SET
    assert other.own_classes == ()
    _, is_old = other.truth.open_for_evaluation()
    assert not is_old.any()
