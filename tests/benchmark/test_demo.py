from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from justright.benchmark import demo
from justright.benchmark.frozen import discover_frozen
from justright.benchmark.glyph_problem import OWN, POOL_SCRIPTS, glyph_problem
from justright.cli import main
from justright.cli.demo import verdict
from justright.errors import DegenerateError


def test_the_problem_has_old_and_new_characters_and_a_pool_of_many_scripts():
    problem = glyph_problem(per_class=12, pool_per_class=1)
    assert {origin.dataset for origin in problem.pool.origins} == {OWN, *POOL_SCRIPTS}
    assert {problem.pool.origins[label].label for label in problem.own_classes} <= set(problem.split.old_classes)
    assert set(problem.split.unlabeled.labels.tolist()) == {-1}
    labels, is_old = problem.truth.open_for_evaluation()
    assert 0.2 < is_old.mean() < 0.5
    assert len(set(labels.tolist())) == problem.n_target_classes


def test_clusters_are_one_for_each_kept_class_and_each_category_that_is_none_of_them():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(6, 8)).astype(np.float32) * 5
    pool_labels = np.repeat([0, 1, 2], 10)  # 0 and 1 are of the target, 2 is foreign
    target = np.repeat([0, 1, 3, 4], 10)  # 3 and 4 are new
    noise = rng.normal(size=(70, 8)).astype(np.float32) * 0.1
    pool_features, target_features = centers[pool_labels] + noise[:30], centers[target] + noise[30:]
    for kept in ([0, 1, 2], [0, 2], [2]):
        found = discover_frozen(pool_features, pool_labels, target_features, kept, own=[0, 1], n_target_classes=4)
        assert len(set(found.tolist())) == 4, "the target's four categories, whatever is kept"
    with pytest.raises(DegenerateError, match="no class of the pool is kept"):
        discover_frozen(pool_features, pool_labels, target_features, [], [0, 1], 4)


def test_the_demo_runs_and_says_what_it_found(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(demo, "glyph_problem", lambda seed: glyph_problem(per_class=6, pool_per_class=2, seed=seed))
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["scores"]) == ["none", "cui", "bins", "beta > 0.5"]
    assert found["categories"]["true"] == 79
    assert {file.name for file in (tmp_path / "out").iterdir()} >= {
        "pool.features",
        "target.features",
        "scores-none.json",
    }


@pytest.mark.parametrize(
    ("best", "gain", "said"),
    [("none", 0.0, "did not help"), ("bins", 0.4, "within the noise"), ("bins", 5.0, "gains 5.0 points")],
)
def test_the_verdict_is_plain(best, gain, said):
    assert said in verdict(best, gain, noise=1.0)
    assert "Nothing was trained" in verdict(best, gain, noise=1.0)
