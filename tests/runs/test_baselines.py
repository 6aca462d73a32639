from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.made_runs import make_run

from justright.clustering.baselines import BASELINES
from justright.runs import frozen_check as module
from justright.runs.frozen_check import baseline_scores, simple_results


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run")


def results_of(run):
    """The clusters of the simple methods, with the K and the labels of the run."""
    categories, (pool, target) = run.predictions.categories, run.frozen
    number = {each.name: k for k, each in enumerate(categories) if each.kind == "known"}
    names = pool.index["class_name"].to_pylist()
    labels = np.array([number.get(name.removeprefix("target/"), -1) for name in names])
    method = SimpleNamespace(
        class_rows_=np.flatnonzero(labels >= 0),
        class_labels_=labels[labels >= 0],
        known_labels_=tuple(number.values()),
        n_categories_=len(categories),
        categories_=categories,
        seed=0,
    )
    return simple_results(method, pool, target, run.own_classes)


def scores_of(run, judged, results):
    known = [each.name for each in run.predictions.categories if each.kind == "known"]
    return baseline_scores(results, known, judged)


def test_every_simple_method_is_scored(run):
    result = scores_of(run, run.judged(run.truth_file), results_of(run))
    assert list(result) == list(BASELINES)
    for method, scores in result.items():
        assert 0.3 < scores["all"] <= 1, method
        if method == "k-means" or method.startswith(("Ward", "average")):
            assert scores["names"]["old"] == 0, "no image has a name"
        else:
            assert scores["names"]["old"] > 0.3
        assert scores["names"]["all"] <= scores["all"] + 1e-9


def test_true_labels_change_scores_only(run):
    judged, results = run.judged(run.truth_file), results_of(run)
    right = scores_of(run, judged, results)
    judged.y_true[:] = np.random.default_rng(0).permutation(judged.y_true)
    judged.is_old[:] = np.isin(judged.y_true, np.unique(judged.y_true)[:12])
    assert scores_of(run, judged, results)["Ward"]["all"] < right["Ward"]["all"]


def test_large_targets_are_not_clustered(run, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 60)
    assert results_of(run) is None


def test_given_labels_are_not_scored(run):
    judged, results = run.judged(run.truth_file), results_of(run)
    is_given = np.arange(len(judged.y_true)) % 3 == 0
    every = baseline_scores({"truth": judged.y_true}, [], judged)["truth"]
    wrong = np.where(is_given, 0, judged.y_true)
    parts = {name: getattr(judged, name)[~is_given] for name in ("y_true", "y_pred", "is_old")}
    some = replace(judged, **parts, has_kept_labels=None, called=None, is_given=is_given)
    assert baseline_scores({"truth": wrong}, [], some)["truth"]["all"] == every["all"] == 1
    assert len(results["Ward"]) == len(is_given)
