from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from justright.benchmark import demo as experiments
from justright.benchmark.demo import (
    CLASSES_A_SET,
    LABELED_SETS,
    N_EPOCHS,
    OWN,
    POOL_SCRIPTS,
    SETTINGS,
    demo_spec,
    glyph_problem,
    run_demo,
    with_labeled_set,
)
from justright.discovery.methods import METHODS
from justright.estimation import COUNTERS
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


@pytest.mark.parametrize("name", LABELED_SETS)
def test_labeled_sets_have_one_size_and_the_whole_target_is_new_to_them(name):
    problem = glyph_problem(per_class=2, pool_per_class=1)
    other = with_labeled_set(problem, LABELED_SETS[name])
    assert len(other.pool.origins) == CLASSES_A_SET
    assert other.own_classes == ()
    _, is_old = other.truth.open_for_evaluation()
    assert not is_old.any()


def test_settings_differ_in_selector_and_role_alone():
    specs = [demo_spec(setting, seed=3, n_target=79, n_epochs=N_EPOCHS).to_json() for setting in SETTINGS]
    for spec in specs:
        del spec["selector"], spec["pool_role"]
    assert all(spec == specs[0] for spec in specs)
    assert specs[0]["settings"] == {"n_epochs": 16, "n_steps": 18}
    assert (specs[0]["seed"], specs[0]["n_target"], specs[0]["scale"]) == (3, 79, "small")


def test_kmeans_is_not_asked_to_train():
    assert demo_spec("own", 0, 79, 2, "kmeans").settings == {}


def test_the_long_form_pairs_every_method_setting_and_seed(monkeypatch):
    monkeypatch.setattr(experiments, "glyph_problem", lambda seed: glyph_problem(2, 1, seed))
    runs = list(experiments._full_runs(seed=0))
    assert len({path for *_, path in runs}) == len(runs), "no run overwrites another"
    per_experiment = Counter(experiment for experiment, *_ in runs)
    assert per_experiment == {f"methods, {name}": len(SETTINGS) * 3 for name in METHODS} | {"labeled sets": 4 * 3}
    assert all(spec.settings.get("n_epochs") == 30 for _, _, spec, _ in runs if spec.method != "kmeans")


class InstantRun:
    """Stands in for a run: a second of training, and nothing found."""

    def __init__(self, problem, spec, out, backbone, asked):
        self.out, self.seconds = out, {"train": 1.0, "count": 0.0}

    def all(self):
        return RunFolder(self.out)


def test_the_short_form_gives_runs_counts_and_the_sum_of_seconds_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "glyph_problem", lambda seed: glyph_problem(2, 1, seed))
    monkeypatch.setattr(experiments, "Run", InstantRun)
    monkeypatch.setattr(RunFolder, "frozen", ("pool", "target"))
    monkeypatch.setattr(experiments, "fitted_counter", lambda name, *_: SimpleNamespace(n_categories_=len(name)))
    result = run_demo(tmp_path)
    assert {name: run.path for name, run in result.runs.items()} == {name: tmp_path / name for name in SETTINGS}
    assert result.counts == {name: len(name) for name in COUNTERS}
    assert result.seconds["train"] == len(SETTINGS)
    assert list(result.seconds) == ["draw", "train", "count"]
