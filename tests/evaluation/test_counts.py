from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from justright.evaluation import Counts
from justright.evaluation import counts as counts_module
from justright.evaluation.counts import adjusted_rand_index, normalized_mutual_information
from justright.utils.errors import DataError, DegenerateError


def random_labels(seed: int, n: int = 500, n_classes: int = 7, n_clusters: int = 9):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_classes, n) * 3, rng.integers(0, n_clusters, n) + 5


def as_dict(counts: Counts) -> dict[tuple[int, int], int]:
    return {(int(k), int(c)): int(n) for k, c, n in zip(counts.cluster, counts.class_, counts.n, strict=True)}


def test_agrees_with_counting_one_by_one():
    y_true, y_pred = random_labels(0)
    slow: dict[tuple[int, int], int] = {}
    for c, k in zip(y_true.tolist(), y_pred.tolist(), strict=True):
        slow[k, c] = slow.get((k, c), 0) + 1
    counts = Counts.of(y_true, y_pred)
    assert as_dict(counts) == slow
    assert list(as_dict(counts)) == sorted(slow)


def test_huge_labels_count_like_small_ones(monkeypatch):
    y_true, y_pred = random_labels(1)
    far = Counts.of(y_true * 10**15, y_pred + 10**17)
    near = Counts.of(y_true, y_pred)
    np.testing.assert_array_equal(far.n, near.n)
    np.testing.assert_array_equal(far.cluster, near.cluster + 10**17)
    monkeypatch.setattr(counts_module, "_DENSE_CELLS", 0)  # the way for many classes and clusters
    y_true, y_pred = np.arange(40) * 7, np.arange(40)[::-1] * 5
    assert as_dict(Counts.of(y_true, y_pred)) == {(int(k), int(c)): 1 for k, c in zip(y_pred, y_true, strict=True)}


def test_sums_per_class_and_per_cluster():
    counts = Counts.of(np.array([8, 8, 2, 8]), np.array([1, 1, 1, 6]))
    assert counts.n_images == 4
    assert dict(zip(counts.classes.tolist(), counts.per_class().tolist(), strict=True)) == {2: 1, 8: 3}
    assert dict(zip(counts.clusters.tolist(), counts.per_cluster().tolist(), strict=True)) == {1: 3, 6: 1}
    assert as_dict(counts.only(np.array([2]))) == {(1, 2): 1}


def test_refuses_what_cannot_be_counted():
    with pytest.raises(DegenerateError, match="No images"):
        Counts.of(np.array([], dtype=int), np.array([], dtype=int))
    with pytest.raises(DataError, match="1 of 2 images have a negative class"):
        Counts.of(np.array([-1, 0]), np.array([0, 0]))
    with pytest.raises(DataError, match="negative cluster"):
        Counts.of(np.array([0, 0]), np.array([0, -1]))


def test_one_cluster_and_one_class_have_one_sum_each():
    counts = Counts.of(np.full(6, 4), np.full(6, 2))
    assert counts.per_class().tolist() == [6]
    assert counts.per_cluster().tolist() == [6]


RNG = np.random.default_rng(0)
PARTITIONS = {
    "unrelated": (RNG.integers(0, 5, 300), RNG.integers(0, 8, 300)),
    "equal": (np.repeat([0, 1, 2], 4), np.repeat([5, 3, 9], 4)),
    "one group each": (np.zeros(5, dtype=int), np.ones(5, dtype=int)),
    "one group and many": (np.zeros(5, dtype=int), np.arange(5)),
    "all alone": (np.arange(6), np.arange(6)[::-1].copy()),
    "one image": (np.array([3]), np.array([0])),
    "against chance": (np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_agrees_with_scikit_learn(name):
    y_true, y_pred = PARTITIONS[name]
    counts = Counts.of(y_true, y_pred)
    assert normalized_mutual_information(counts) == pytest.approx(
        normalized_mutual_info_score(y_true, y_pred), abs=1e-12
    )
    assert adjusted_rand_index(counts) == pytest.approx(adjusted_rand_score(y_true, y_pred), abs=1e-12)
