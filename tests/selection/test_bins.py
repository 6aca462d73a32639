from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from justright.geometry import ClassSums
from justright.selection import BinsSelector
from justright.utils.errors import DegenerateError, JustrightError
from justright.utils.seeding import generator


def bins_as_loops(data, seed, n_splits):
    """Eq. 7, 10, 14, 15, the threshold and two bins, with plain loops and a general linear program."""

    def means(features, labels):
        result = {}
        for c in sorted(set(labels.tolist())):
            rows = [row for row, label in zip(features.tolist(), labels.tolist(), strict=True) if label == c]
            result[c] = ([sum(column) / len(rows) for column in zip(*rows, strict=True)], len(rows))
        return list(result.values())

    classes, clusters = means(data.pool, data.labels), means(data.target, data.clusters)
    total, threshold = [0.0] * len(classes), 0.0
    for split in range(n_splits):
        shuffled = generator(seed, "bins", split).permutation(len(clusters)).tolist()
        zero, one = shuffled[: len(clusters) // 2], shuffled[len(clusters) // 2 :]
        source, sink = classes + [clusters[i] for i in zero], [clusters[j] for j in one]
        n, m = len(source), len(sink)
        d = [[math.dist(a, b) for b, _ in sink] for a, _ in source]
        leave, arrive = sum(count for _, count in source), sum(count for _, count in sink)
        solved = linprog(
            [d[i][j] for i in range(n) for j in range(m)],
            A_eq=[[float(p // m == i) for p in range(n * m)] for i in range(n)]
            + [[float(p % m == j) for p in range(n * m)] for j in range(m)],
            b_eq=[count / leave for _, count in source] + [count / arrive for _, count in sink],
        )
        k = solved.x.reshape(n, m)
        to_target = []
        for i in range(n):
            to_target.append(sum(k[i][j] * d[i][j] for j in range(m)) / sum(k[i][j] for j in range(m)))
        total = [t + x / n_splits for t, x in zip(total, to_target, strict=False)]
        threshold += sum(to_target[len(classes) :]) / len(zero) / n_splits
    remaining = sorted((x, c) for c, x in enumerate(total) if x <= threshold)
    near = math.ceil(len(remaining) / 2)
    return total, threshold, sorted(c for _, c in remaining[near:])


def test_distances_agree_with_eq_14_and_15_as_loops(cloud):
    selector = BinsSelector(n_splits=4, seed=3).fit(cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    distance, threshold, selected = bins_as_loops(cloud, seed=3, n_splits=4)
    assert selector.class_distance_ == pytest.approx(distance, abs=1e-9)
    assert selector.threshold_ == pytest.approx(threshold, abs=1e-9)
    assert selector.selected_classes_.tolist() == selected


def test_classes_at_medium_distance_are_kept(plane):
    selector = BinsSelector(n_clusters=12, n_splits=100).fit(plane.pool, plane.labels, plane.target)
    assert selector.selected_classes_.tolist() == plane.middle.tolist()
    assert selector.bin_.tolist() == [1] * 12 + [2] * 12 + [0] * 6
    assert selector.reason_[0] == "too near: bin 1 of 2"
    assert selector.reason_[12] == "kept: bin 2 of 2"
    assert selector.reason_[24].startswith("too far: ")
    assert np.all(selector.class_distance_[plane.far] > selector.threshold_)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "l2"])
def test_every_metric_discards_distant_classes(metric):
    rng = np.random.default_rng(0)
    axes = np.eye(6)
    target = np.concatenate([axes[0] + 0.3 * axes[i] for i in (1, 2, 3, 4)])
    target = np.tile(target.reshape(4, 6), (10, 1)) + rng.normal(0, 0.01, (40, 6))
    places = np.stack([axes[0], axes[0] + 0.1 * axes[1], axes[0] + 0.1 * axes[2], axes[5]])
    pool = np.repeat(places, 3, axis=0) + rng.normal(0, 0.01, (12, 6))
    selector = BinsSelector(metric=metric, select=False).fit(
        pool, np.repeat(np.arange(4), 3), target, np.tile(np.arange(4), 10)
    )
    assert selector.selected_classes_.tolist() == [0, 1, 2]


def test_l2_ignores_the_length_of_features(cloud):
    selector = BinsSelector(metric="l2", select=False)
    expected = selector.fit(cloud.pool, cloud.labels, cloud.target, cloud.clusters).class_distance_
    length = np.random.default_rng(0).uniform(0.5, 2.0, (60, 1))
    again = selector.fit(cloud.pool * length, cloud.labels, cloud.target / length, cloud.clusters)
    assert again.class_distance_ == pytest.approx(expected, abs=1e-9)


def test_discard_and_select_can_be_turned_off(plane):
    given = (plane.pool, plane.labels, plane.target, plane.clusters)
    keep_near = BinsSelector(n_splits=100, select=False).fit(*given)
    assert keep_near.selected_classes_.tolist() == [*plane.near, *plane.middle]
    keep_far = BinsSelector(n_splits=100, discard=False).fit(*given)
    assert set(plane.far) < set(keep_far.selected_classes_.tolist())
    everything = BinsSelector(discard=False, select=False).fit(*given)
    assert everything.class_weight_.tolist() == [1.0] * 30


def test_keep_bin_chooses_the_bin(plane):
    given = (plane.pool, plane.labels, plane.target, plane.clusters)
    chosen = [BinsSelector(n_bins=3, keep_bin=b).fit(*given).selected_classes_.tolist() for b in (1, 2, 3)]
    assert [len(classes) for classes in chosen] == [8, 8, 8]
    assert sorted(c for classes in chosen for c in classes) == [*plane.near, *plane.middle]
    assert BinsSelector(n_bins=3).fit(*given).selected_classes_.tolist() == chosen[2]


def test_combine_majority_counts_splits(plane):
    selector = BinsSelector(n_splits=25, combine="majority").fit(plane.pool, plane.labels, plane.target, plane.clusters)
    assert selector.split_distance_.shape == (25, 30)
    assert selector.kept_share_[plane.far].tolist() == [0.0] * 6
    assert np.array_equal(selector.class_weight_ > 0, selector.kept_share_ > 0.5)
    assert selector.reason_[24] == "too far: chosen in 0 of 25 splits"


def test_uniform_mass_ignores_cluster_sizes(cloud):
    given = (cloud.pool, cloud.labels)
    more = np.concatenate([np.flatnonzero(cloud.clusters == 0)] * 5 + [np.arange(60)])

    def distance(mass, rows):
        selector = BinsSelector(mass=mass, select=False, discard=False)
        return selector.fit(*given, cloud.target[rows], cloud.clusters[rows]).class_distance_

    assert distance("uniform", more) == pytest.approx(distance("uniform", np.arange(60)))
    assert distance("images", more) != pytest.approx(distance("images", np.arange(60)))


def test_splits_depend_on_the_seed(plane):
    given = (plane.pool, plane.labels, plane.target, plane.clusters)
    first, again, other = (BinsSelector(seed=s).fit(*given).class_distance_ for s in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_empty_selection_error_names_the_step(plane):
    is_far = np.isin(plane.labels, plane.far)
    with pytest.raises(DegenerateError, match="no class survives: the nearest is at"):
        BinsSelector().fit(plane.pool[is_far], plane.labels[is_far], plane.target, plane.clusters)
    with pytest.raises(DegenerateError, match="24 of 30 classes survive the threshold, and none is in bin 25"):
        BinsSelector(n_bins=25).fit(plane.pool, plane.labels, plane.target, plane.clusters)


@pytest.mark.parametrize(
    "wrong",
    [
        {"metric": "manhattan"},
        {"mass": "area"},
        {"combine": "sum"},
        {"n_bins": 0},
        {"n_splits": 0},
        {"keep_bin": 3},
    ],
    ids=str,
)
def test_invalid_options_are_rejected_by_name(plane, wrong):
    with pytest.raises(JustrightError, match=next(iter(wrong))):
        BinsSelector(**wrong).fit(plane.pool, plane.labels, plane.target, plane.clusters)


def bins_of(distance, threshold, **params):
    return BinsSelector(**params)._bins(np.array(distance), threshold).tolist()


def test_classes_are_divided_into_equal_bins():
    assert bins_of([5.0, 1.0, 9.0, 3.0, 2.0, 4.0, 6.0], 5.0, n_bins=2) == [2, 1, 0, 1, 1, 2, 0]


def test_class_at_the_threshold_is_not_discarded():
    assert bins_of([1.0, 2.0], 2.0, n_bins=1) == [1, 1]


def test_discard_false_keeps_all_classes_in_bins():
    assert bins_of([3.0, 1.0, 2.0], 0.0, n_bins=3, discard=False) == [3, 1, 2]


def test_majority_takes_the_most_frequent_bin(monkeypatch):
    distance = np.array([[9.0, 1.0, 2.0], [9.0, 2.0, 1.0], [1.0, 2.0, 9.0]])  # bins 0 1 2, 0 2 1, 1 2 0
    monkeypatch.setattr(BinsSelector, "_measure", lambda *_: (distance, np.full(3, 5.0)))
    selector = BinsSelector(n_splits=3, combine="majority")
    sums = ClassSums().update(np.eye(3), np.arange(3))
    weights = selector._decide(sums, sums)
    assert selector.bin_.tolist() == [0, 2, 0]
    assert weights.weight.tolist() == [0.0, 1.0, 0.0]


def reasons(bins, is_kept, distance=None, kept_share=None, threshold=0.64, **params):
    selector = BinsSelector(**params)
    selector.bin_, selector.threshold_, selector.kept_share_ = np.array(bins), threshold, kept_share
    selector.class_distance_ = np.zeros(len(bins)) if distance is None else np.array(distance)
    return [selector._reason(place, kept) for place, kept in enumerate(is_kept)]


def test_reasons_name_the_deciding_step():
    bins, distance = [0, 1, 2, 3], [0.71, 0.1, 0.3, 0.6]
    assert reasons(bins, [False, False, True, False], distance, n_bins=3, keep_bin=2) == [
        "too far: 0.71 > 0.64",
        "too near: bin 1 of 3",
        "kept: bin 2 of 3",
        "too far: bin 3 of 3",
    ]
    assert reasons(bins, [False, True, True, True], distance, select=False)[1] == "kept: 0.10 <= 0.64"
    assert reasons([1, 2], [True, True], select=False, discard=False)[0] == "kept: nothing is discarded"


def test_reasons_show_enough_digits():
    assert reasons([0], [False], [0.6412], threshold=0.6411) == ["too far: 0.6412 > 0.6411"]


def test_reason_counts_votes():
    message = reasons([2, 1, 0], [True, False, False], kept_share=[0.7, 0.2, 0.0], n_splits=10, combine="majority")
    assert message == [
        "kept: chosen in 7 of 10 splits",
        "too near: chosen in 2 of 10 splits",
        "too far: chosen in 0 of 10 splits",
    ]
