from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from justright.evaluation import Counts, match_counts
from justright.utils.errors import DataError, DegenerateError
from justright.utils.types import UNLABELED


def match_clusters(y_true, y_pred):
    return match_counts(Counts.of(y_true, y_pred))


def accuracy_as_loops(y_true, y_pred, class_of) -> float:
    right = 0
    for c, k in zip(y_true.tolist(), y_pred.tolist(), strict=True):
        right += class_of.get(k) == c
    return right / len(y_true)


def best_accuracy_by_trying_all_maps(y_true, y_pred) -> float:
    classes, clusters = np.unique(y_true).tolist(), np.unique(y_pred).tolist()
    padded = classes + [None] * len(clusters)  # a cluster may stay without a class
    return max(
        accuracy_as_loops(y_true, y_pred, dict(zip(clusters, chosen, strict=True)))
        for chosen in set(itertools.permutations(padded, len(clusters)))
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=25))
def test_matching_is_right_for_most_images(pairs):
    y_true, y_pred = (np.array(column) for column in zip(*pairs, strict=True))
    matching = match_clusters(y_true, y_pred)
    class_of = dict(zip(matching.clusters.tolist(), matching.classes.tolist(), strict=True))
    assert matching.accuracy == pytest.approx(best_accuracy_by_trying_all_maps(y_true, y_pred))
    assert matching.accuracy == pytest.approx(accuracy_as_loops(y_true, y_pred, class_of))
    assert np.mean(matching.to_classes(y_pred) == y_true) == pytest.approx(matching.accuracy)


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(3, 8), (8, 3), (1, 5), (5, 1)])
def test_matching_is_one_to_one(n_classes, n_clusters):
    rng = np.random.default_rng(0)
    matching = match_clusters(rng.integers(0, n_classes, 400), rng.integers(0, n_clusters, 400))
    assert len(matching.classes) == len(matching.clusters) == min(n_classes, n_clusters)
    assert len(set(matching.classes.tolist())) == len(set(matching.clusters.tolist())) == len(matching.classes)


def test_labels_may_have_gaps():
    matching = match_clusters(np.array([7, 7, 10**12]), np.array([3, 3, 900]))
    assert matching.clusters.tolist() == [3, 900]
    assert matching.classes.tolist() == [7, 10**12]
    assert matching.n_shared.tolist() == [2, 1]


def test_clusters_without_shared_images_are_not_matched():
    # class 2 and the second cluster are both left over, but no image is in both
    y_true, y_pred = np.array([1, 1, 1, 2, 0, 0, 0, 1]), np.array([5, 5, 5, 5, 6, 6, 6, 7])
    matching = match_clusters(y_true, y_pred)
    assert matching.clusters.tolist() == [5, 6]
    assert matching.to_classes(np.array([5, 6, 7, 99])).tolist() == [1, 0, UNLABELED, UNLABELED]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20),
    st.permutations(range(5)),
    st.randoms(use_true_random=False),
)
def test_matching_ignores_cluster_names_and_image_order(pairs, names, random):
    y_true, y_pred = (np.array(column) for column in zip(*pairs, strict=True))
    rows = list(range(len(y_true)))
    random.shuffle(rows)
    renamed = match_clusters(y_true[rows], np.array(names)[y_pred[rows]])
    original = match_clusters(y_true, y_pred)
    # of two clusters with equal content either may be matched; the number of right images of each class is the same
    right = dict(zip(original.classes.tolist(), original.n_shared.tolist(), strict=True))
    assert dict(zip(renamed.classes.tolist(), renamed.n_shared.tolist(), strict=True)) == right


def test_one_matching_for_all_images():
    y_true, y_pred = np.array([0, 0, 1, 1, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1, 1, 0, 0])
    halves = [match_clusters(y_true[half], y_pred[half]) for half in (slice(4), slice(4, None))]
    assert [half.accuracy for half in halves] == [1.0, 1.0]
    assert match_clusters(y_true, y_pred).accuracy == 0.5


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(60, 60), (30, 140), (140, 30)])
def test_matching_is_as_good_as_a_dense_assignment(n_classes, n_clusters):
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, n_classes, 3000), rng.integers(0, n_clusters, 3000)
    shared = np.zeros((n_clusters, n_classes))
    np.add.at(shared, (y_pred, y_true), 1)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    assert match_clusters(y_true, y_pred).accuracy == pytest.approx(shared[rows, columns].sum() / 3000)


def test_every_image_may_be_a_cluster_of_its_own():
    y_true = np.random.default_rng(0).integers(0, 300, 300_000)
    assert match_clusters(y_true, np.arange(300_000)).n_shared.tolist() == [1] * 300


def random_labels(seed: int, n: int = 500, n_classes: int = 7, n_clusters: int = 9):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_classes, n) * 3, rng.integers(0, n_clusters, n) + 5


def as_dict(counts: Counts) -> dict[tuple[int, int], int]:
    return {(int(k), int(c)): int(n) for k, c, n in zip(counts.cluster, counts.class_, counts.n, strict=True)}


def test_counts_agree_with_loops():
    y_true, y_pred = random_labels(0)
    slow: dict[tuple[int, int], int] = {}
    for c, k in zip(y_true.tolist(), y_pred.tolist(), strict=True):
        slow[k, c] = slow.get((k, c), 0) + 1
    counts = Counts.of(y_true, y_pred)
    assert as_dict(counts) == slow
    assert list(as_dict(counts)) == sorted(slow)


def test_huge_labels_count_like_small_ones():
    y_true, y_pred = random_labels(1)
    far = Counts.of(y_true * 10**15, y_pred + 10**17)
    near = Counts.of(y_true, y_pred)
    np.testing.assert_array_equal(far.n, near.n)
    np.testing.assert_array_equal(far.cluster, near.cluster + 10**17)


def test_sums_per_class_and_per_cluster():
    counts = Counts.of(np.array([8, 8, 2, 8]), np.array([1, 1, 1, 6]))
    assert counts.n_images == 4
    assert dict(zip(counts.classes.tolist(), counts.per_class().tolist(), strict=True)) == {2: 1, 8: 3}
    assert dict(zip(counts.clusters.tolist(), counts.per_cluster().tolist(), strict=True)) == {1: 3, 6: 1}
    assert as_dict(counts.only(np.array([2]))) == {(1, 2): 1}


def test_counts_reject_invalid_labels():
    with pytest.raises(DegenerateError, match="no images"):
        Counts.of(np.array([], dtype=int), np.array([], dtype=int))
    with pytest.raises(DataError, match="classes: 1 of 2 images have a label below 0"):
        Counts.of(np.array([-1, 0]), np.array([0, 0]))
    with pytest.raises(DataError, match="clusters: 1 of 2 images"):
        Counts.of(np.array([0, 0]), np.array([0, -1]))


def test_one_cluster_and_one_class_have_one_sum_each():
    counts = Counts.of(np.full(6, 4), np.full(6, 2))
    assert counts.per_class().tolist() == [6]
    assert counts.per_cluster().tolist() == [6]
