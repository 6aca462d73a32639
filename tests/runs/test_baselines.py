from __future__ import annotations

import numpy as np
import pytest
from tests.made_runs import make_run

from justright.clustering.baselines import BASELINES
from justright.runs import frozen_check as module
from justright.runs.frozen_check import baseline_scores, judged_rows


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run")


def scores_of(run, judged):
    categories, (pool, target) = run.predictions.categories, run.frozen
    number = {each.name: k for k, each in enumerate(categories) if each.kind == "known"}
    names = pool.index["class_name"].to_pylist()
    labels = np.array([number.get(name.removeprefix("target/"), -1) for name in names])
    return baseline_scores(categories, run.own_classes, labels, judged, pool, target)


def test_every_simple_method_is_scored(run):
    found = scores_of(run, run.judged(run.truth_file))
    assert list(found) == list(BASELINES)
    for method, scores in found.items():
        assert 0.3 < scores["all"] <= 1, method
        if method == "k-means" or method.startswith(("Ward", "average")):
            assert scores["names"]["old"] == 0, "nothing is called by a name"
        else:
            assert scores["names"]["old"] > 0.3
        assert scores["names"]["all"] <= scores["all"] + 1e-9


def test_true_labels_change_scores_only(run, monkeypatch):
    seen, simple_clusters = [], module.simple_clusters

    def remembered(features, method):
        seen.append(simple_clusters(features, method).tolist())
        return np.array(seen[-1])

    monkeypatch.setattr(module, "simple_clusters", remembered)
    judged = run.judged(run.truth_file)
    right = scores_of(run, judged)
    judged.y_true[:] = np.random.default_rng(0).permutation(judged.y_true)
    judged.is_old[:] = np.isin(judged.y_true, np.unique(judged.y_true)[:12])
    wrong = scores_of(run, judged)
    assert seen[: len(BASELINES)] == seen[len(BASELINES) :]
    assert wrong["Ward"]["all"] < right["Ward"]["all"]


def test_large_targets_are_subsampled(run, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 60)
    n_clustered = []

    def remembered(features, _method):
        n_clustered.append((len(features.target), len(features.labeled)))
        return np.zeros(len(features.target), dtype=np.int64)

    monkeypatch.setattr(module, "simple_clusters", remembered)
    scores_of(run, run.judged(run.truth_file))
    assert set(n_clustered) == {(60, 60)}


def test_given_labels_are_not_scored():
    is_given = np.array([False, True, False, False, True, False])
    is_judged, place = judged_rows(np.array([0, 1, 3, 5]), is_given)
    assert is_judged.tolist() == [True, False, True, True]
    assert place.tolist() == [0, 2, 3], "places among rows 0, 2, 3 and 5"
