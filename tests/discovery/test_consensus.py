from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from justright.discovery.predictions import Predictions, category_names, consensus

KNOWN = ("cat", "dog")


def run_of(cluster, n_categories=5, confidence=0.5, known=KNOWN, ids=None):
    cluster = np.asarray(cluster)
    ids = [f"{place:03d}" for place in range(len(cluster))] if ids is None else ids
    index = pa.table({"id": ids, "dataset": ["t"] * len(ids), "path": ids})
    sure = np.full(len(cluster), confidence, dtype=np.float32)
    return Predictions(index, cluster, sure, np.zeros(len(cluster), bool), category_names(known, n_categories))


def test_renumbered_clusters_agree_fully():
    first = np.array([0, 1, 2, 2, 3, 3, 4, 4])
    other = np.array([0, 1, 4, 3, 2])[np.array([0, 1, 3, 3, 2, 2, 4, 4])]  # new clusters under other numbers
    found = consensus([run_of(first), run_of(other), run_of(first)])
    np.testing.assert_array_equal(found.predictions.cluster, first)
    np.testing.assert_array_equal(found.agreement, 1.0)


def test_majority_wins_and_dissent_lowers_confidence():
    good = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    bad = good.copy()
    bad[5] = 3
    found = consensus([run_of(good, confidence=0.9), run_of(bad, confidence=0.9), run_of(good, confidence=0.9)])
    np.testing.assert_array_equal(found.predictions.cluster, good)
    assert found.agreement[5] == pytest.approx(2 / 3)
    assert found.predictions.confidence[5] == pytest.approx(0.6)
    assert found.predictions.confidence[4] == pytest.approx(0.9)


def test_tie_goes_to_the_higher_confidence():
    good, bad = np.array([0, 0, 2, 2, 2, 3, 3]), np.array([0, 0, 2, 2, 3, 3, 3])
    found = consensus([run_of(bad, confidence=0.4), run_of(good, confidence=0.9)])
    np.testing.assert_array_equal(found.predictions.cluster, good)


def test_known_classes_are_never_matched_to_new_clusters():
    # in the second run all dogs are a new cluster, which an unconstrained matching would take for class dog
    first, second = np.array([0, 0, 1, 1, 1, 2, 2]), np.array([0, 0, 3, 3, 3, 2, 2])
    found = consensus([run_of(first, 4), run_of(second, 4)])
    assert set(found.agreement[2:5]) == {0.5}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_first_matching_is_optimal(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 6, size=(2, 30))
    found = consensus([run_of(first, 6, 0.0), run_of(second, 6, 0.0)])
    best = max(np.mean(np.array([0, 1, *(2 + np.array(order))])[second] == first) for order in permutations(range(4)))
    assert np.mean(found.agreement == 1.0) >= best - 1e-12


def test_vote_beats_the_mean_run_if_errors_are_independent():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 12, size=2000)
    runs = []
    for _ in range(3):
        wrong = rng.random(2000) < 0.3
        shuffled = np.array([0, 1, *(2 + rng.permutation(10))])
        runs.append(run_of(shuffled[np.where(wrong, rng.integers(0, 12, 2000), truth)], 12))
    found = consensus(runs)
    name = np.full(12, -1)
    name[:2] = 0, 1
    for cluster in range(2, 12):
        name[cluster] = np.bincount(truth[found.predictions.cluster == cluster]).argmax()
    assert np.mean(name[found.predictions.cluster] == truth) > 0.78  # a single run has 0.725
    right = name[found.predictions.cluster] == truth
    assert right[found.agreement == 1].mean() > right[found.agreement < 0.5].mean() + 0.3
