from __future__ import annotations

import logging
from itertools import permutations

import numpy as np
import pytest

from justright.clustering.ward import cut_tree, ward_merges
from justright.discovery.cms import PATIENCE_OF_K, NumberedClusters, ShiftedClusters, rows_of_tree
from justright.utils.errors import DegenerateError

N_KNOWN, N_LABELED = 3, 30


def rows_of(noise=0.1, n=120, n_classes=6, seed=0):
    """Unit rows, those of known classes first, and the class of each."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(N_LABELED) % N_KNOWN, rng.integers(n_classes, size=n - N_LABELED)])
    x = np.eye(8)[y] + noise * rng.normal(size=(n, 8))
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


def clusters_of(y, n_ward=1000):
    return ShiftedClusters(y[:N_LABELED], N_KNOWN, rows_of_tree(len(y), n_ward, seed=0))


def test_known_classes_are_numbered_before_other_clusters():
    x, y = rows_of()
    found = clusters_of(y).best(x, 6, n_neighbors=8, share=0.5)
    assert found.accuracy == 1.0
    np.testing.assert_array_equal(found.category[y < N_KNOWN], y[y < N_KNOWN])
    assert set(found.category[y >= N_KNOWN].tolist()) == {3, 4, 5}
    assert len(set(zip(found.category.tolist(), y.tolist(), strict=True))) == 6


def test_clusters_match_classes_by_labeled_images():
    """Compared with the best of all matchings of clusters to classes."""
    x, y = rows_of(noise=0.6)
    merges = ward_merges(x)
    cluster = cut_tree(merges, 6)
    best = max(
        sum(((cluster[:N_LABELED] == own[k]) & (y[:N_LABELED] == k)).sum() for k in range(N_KNOWN))
        for own in permutations(range(6), N_KNOWN)
    )
    assert clusters_of(y).cut(x, merges, 6).accuracy == pytest.approx(best / N_LABELED)


def test_class_without_cluster_gets_the_nearest_free_one():
    x = np.repeat(np.eye(4)[[0, 0, 2, 3]], 5, axis=0)  # classes 0 and 1 are alike and share a cluster
    x[5:10, 1] = 1e-3
    labels = np.repeat([0, 1], 5)
    x[15:, 0] = 0.5  # of the two clusters that are left, this one is nearer to them
    found = ShiftedClusters(labels, 2, np.arange(20)).cut(x, ward_merges(x), 3)
    assert found.accuracy == 0.5
    assert len(set(found.category[:10].tolist())) == 1
    assert set(found.category[15:].tolist()) | set(found.category[:10].tolist()) == {0, 1}
    assert set(found.category[10:15].tolist()) == {2}


def test_shifts_continue_while_accuracy_rises(monkeypatch):
    accuracies = iter([0.5, 0.7, 0.7, 0.6, 0.9])
    seen = []

    def cut(self, x, merges, k):
        seen.append(next(accuracies))
        return NumberedClusters(np.array([len(seen)]), seen[-1])

    monkeypatch.setattr(ShiftedClusters, "cut", cut)
    x, y = rows_of()
    best = clusters_of(y).best(x, 6, 8, 0.5)
    assert seen == [0.5, 0.7, 0.7, 0.6]  # two shifts without a gain
    assert best.category.tolist() == [3]  # the later one of two equals


def test_best_k_uses_labeled_images_only():
    x, y = rows_of(noise=0.05)
    clustering, merges = clusters_of(y), ward_merges(x)
    perfect = [k for k in range(4, 20) if clustering.cut(x, merges, k).accuracy == 1.0]
    assert 6 in perfect
    assert clustering.best_k(x) == perfect[len(perfect) // 2]  # the middle of all equally good K
    with pytest.raises(DegenerateError, match=r"(?s)K cannot be chosen without labels.*categories=given"):
        ShiftedClusters(y[:0], 0, np.arange(len(x))).best_k(x)


def test_search_for_k_stops_without_improvement(monkeypatch):
    x, y = rows_of()
    tried = []

    def cut(self, x, merges, k):
        tried.append(k)
        return NumberedClusters(np.array([k]), 1.0 if k in (8, 9, 10) else 0.5)

    monkeypatch.setattr(ShiftedClusters, "cut", cut)
    assert clusters_of(y).best_k(x) == 9  # the middle of equals
    assert tried == list(range(N_KNOWN + 1, 8 + PATIENCE_OF_K + 1))


def test_images_outside_the_tree_join_the_nearest_cluster(caplog):
    x, y = rows_of(n=400)
    with caplog.at_level(logging.WARNING):
        found = clusters_of(y, n_ward=100).best(x, 6, 8, 0.5)
    assert "uses 100 of 400 images" in caplog.text
    np.testing.assert_array_equal(found.category, clusters_of(y).best(x, 6, 8, 0.5).category)


def test_more_categories_than_images_are_rejected():
    x, y = rows_of()
    with pytest.raises(DegenerateError, match="121 categories for 120 images"):
        clusters_of(y).best(x, 121, 8, 0.5)
