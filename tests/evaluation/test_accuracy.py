from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from justright.evaluation import Counts, evaluate, match_counts, names_right
from justright.evaluation.accuracy import accuracy_of
from justright.evaluation.intervals import wilson
from justright.utils.errors import DataError
from justright.utils.types import UNLABELED

IMAGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=60)


def drawn(seed: int = 0, n: int = 900, n_classes: int = 12):
    """Classes 0 to 5 are old; a third of the images are in random clusters."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, n_classes, n)
    y_pred = np.where(rng.random(n) < 0.35, rng.integers(0, n_classes + 3, n), (y_true * 5) % 13)
    return y_true, y_pred, y_true < n_classes // 2


def accuracies_as_loops(y_true, y_pred, is_old):
    matching = match_counts(Counts.of(y_true, y_pred))
    class_of = dict(zip(matching.clusters.tolist(), matching.classes.tolist(), strict=True))
    sums = {"all": [0, 0], "old": [0, 0], "new": [0, 0]}
    for c, k, old in zip(y_true.tolist(), y_pred.tolist(), is_old.tolist(), strict=True):
        for name in ("all", "old" if old else "new"):
            sums[name][0] += class_of.get(k) == c
            sums[name][1] += 1
    return {name: right / n for name, (right, n) in sums.items()}


def test_agrees_with_the_formula_written_as_loops():
    y_true, y_pred, is_old = drawn()
    scores = evaluate(y_true, y_pred, is_old)
    assert {name: getattr(scores, name) for name in ("all", "old", "new")} == pytest.approx(
        accuracies_as_loops(y_true, y_pred, is_old)
    )
    assert (scores.n_images, scores.n_classes, scores.n_clusters) == (900, 12, len(np.unique(y_pred)))
    assert scores.n_old + scores.n_new == 900


@settings(max_examples=60, deadline=None)
@given(IMAGES)
def test_all_is_the_mean_of_old_and_new_weighted_by_images(images):
    y_true, y_pred = (np.array(column) for column in zip(*images, strict=True))
    for protocol in ("v2", "v1"):
        scores = evaluate(y_true, y_pred, y_true < 3, protocol=protocol, with_intervals=False)
        mixture = np.nansum([scores.n_old * scores.old, scores.n_new * scores.new]) / scores.n_images
        assert scores.all == pytest.approx(mixture)


def test_class_average_counts_rare_classes_like_common_ones():
    # class 0 has 8 images, all right; class 1 has 2 with one right; class 2 has 4, all wrong
    y_true = np.repeat([0, 1, 2], [8, 2, 4])
    y_pred = np.repeat([0, 1, 0, 0], [8, 1, 1, 4])
    scores = evaluate(y_true, y_pred, y_true == 0, protocol="v2b")
    assert scores.all == pytest.approx((1 + 0.5 + 0) / 3)
    assert (scores.old, scores.new) == (1.0, pytest.approx(0.25))
    assert evaluate(y_true, y_pred, y_true == 0).all == pytest.approx(9 / 14)


def test_legacy_protocol_ignores_new_images_in_old_clusters():
    # one cluster holds an old class and a new one: v1 matches it with both
    y_true, y_pred = np.repeat([0, 1], [6, 4]), np.zeros(10, dtype=int)
    legacy, today = (evaluate(y_true, y_pred, y_true == 0, protocol=p) for p in ("v1", "v2"))
    assert (legacy.all, legacy.old, legacy.new) == (1.0, 1.0, 1.0)
    assert (today.all, today.old, today.new) == (0.6, 1.0, 0.0)


@settings(max_examples=40, deadline=None)
@given(IMAGES)
def test_legacy_protocol_never_scores_below_v2(images):
    y_true, y_pred = (np.array(column) for column in zip(*images, strict=True))
    legacy, today = (evaluate(y_true, y_pred, y_true < 3, protocol=p, with_intervals=False) for p in ("v1", "v2"))
    assert legacy.all >= today.all - 1e-12


@settings(max_examples=40, deadline=None)
@given(IMAGES, st.permutations(range(8)), st.sampled_from(["v2", "v2b", "v1"]), st.randoms(use_true_random=False))
def test_scores_ignore_cluster_numbers_and_image_order(images, names, protocol, random):
    y_true, y_pred = (np.array(column) for column in zip(*images, strict=True))
    rows = list(range(len(y_true)))
    random.shuffle(rows)
    renamed = np.array(names)[y_pred] * 11 + 2
    scores = evaluate(y_true, y_pred, y_true < 3, protocol=protocol)
    moved = evaluate(y_true[rows], renamed[rows], y_true[rows] < 3, protocol=protocol)
    assert str(moved) == str(scores)  # NaN is not equal to NaN, so texts are compared


@pytest.mark.parametrize("protocol", ["v2", "v2b", "v1"])
def test_without_old_or_new_images_their_accuracy_is_nan(protocol):
    y_true, y_pred, _ = drawn()
    for is_old in (np.zeros(900, dtype=bool), np.ones(900, dtype=bool)):
        scores = evaluate(y_true, y_pred, is_old, protocol=protocol)
        side, other = (scores.old, scores.new) if is_old.any() else (scores.new, scores.old)
        assert math.isnan(other)
        assert side == scores.all
        assert set(scores.intervals) == {"all", "old" if is_old.any() else "new"}


def test_old_splits_into_kept_and_dropped_labels():
    y_true, y_pred, is_old = drawn()
    is_kept = y_true < 2
    scores = evaluate(y_true, y_pred, is_old, has_kept_labels=is_kept)
    n_kept = int(is_kept.sum())
    mixture = (n_kept * scores.old_kept + (scores.n_old - n_kept) * scores.old_dropped) / scores.n_old
    assert scores.old == pytest.approx(mixture)
    assert scores.old_kept != scores.old_dropped
    assert {"old_kept", "old_dropped"} <= set(scores.intervals)


def test_kept_labels_of_new_classes_are_ignored():
    y_true, y_pred, is_old = drawn()
    has_any = np.random.default_rng(0).random(900) < 0.5
    alike = [evaluate(y_true, y_pred, is_old, has_kept_labels=is_old | extra) for extra in (has_any, ~has_any)]
    assert str(alike[0]) == str(alike[1])


def test_intervals_can_be_left_out():
    assert evaluate(*drawn(), with_intervals=False).intervals == {}


@pytest.mark.parametrize("protocol", ["v2", "v2b", "v1"])
@pytest.mark.parametrize("is_right", [True, False])
def test_interval_of_all_right_or_all_wrong_has_a_width(protocol, is_right):
    """Images of the old classes 0 and 1; the cluster of the new class 2 holds all of them, or they have their own."""
    y_true = np.repeat([0, 1, 2, 3], [30, 5, 40, 20])
    y_pred = np.where((y_true < 2) & ~np.array(is_right), 2, y_true)
    y_pred[-3:] = 2
    scores = evaluate(y_true, y_pred, y_true < 2, protocol=protocol)
    low, high = scores.intervals["old"]
    if protocol != "v1":  # which matches old images among themselves
        assert scores.old == float(is_right)
        assert (high if is_right else low) == scores.old
    assert low <= scores.old <= high
    assert 0.03 < high - low < 0.4


def test_class_that_is_half_old_is_rejected():
    with pytest.raises(DataError, match="some images and false for others of 1 classes"):
        evaluate(np.array([4, 4, 5]), np.array([0, 0, 1]), np.array([True, False, False]))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"is_old": np.array([True])}, r"is_old of shape \(1,\) and type bool, 900 images"),
        ({"is_old": np.ones(900, dtype=int)}, r"is_old of shape \(900,\) and type int64"),
        ({"has_kept_labels": np.array([True])}, r"has_kept_labels of shape \(1,\)"),
        ({"called": np.array([1])}, r"called of shape \(1,\)"),
    ],
)
def test_every_image_needs_an_entry_of_the_right_type(wrong, problem):
    y_true, y_pred, is_old = drawn()
    with pytest.raises(DataError, match=problem):
        evaluate(y_true, y_pred, **{"is_old": is_old} | wrong)


def test_invalid_level_is_rejected():
    y_true, y_pred, is_old = drawn()
    with pytest.raises(DataError, match="level"):
        evaluate(y_true, y_pred, is_old, level=1.0)


def test_a_share_of_images_counts_all_images():
    assert accuracy_of(np.array([30, 5]), np.array([40, 20]), over_classes=False) == (35 / 60, 60)


def test_a_mean_over_classes_has_the_variance_of_as_many_images():
    n_right, n_images = np.array([30, 5, 12]), np.array([40, 20, 15])
    share, n = accuracy_of(n_right, n_images, over_classes=True)
    assert share == pytest.approx((30 / 40 + 5 / 20 + 12 / 15) / 3)
    drawn = np.random.default_rng(0).binomial(n_images, n_right / n_images, size=(20_000, 3)) / n_images
    assert share * (1 - share) / n == pytest.approx(drawn.mean(axis=1).var(), rel=0.05)


def test_perfect_classes_use_the_effective_size_of_kish():
    n_images = np.array([40, 20, 15])
    n_as_loops = 1 / sum((1 / 3) ** 2 / n for n in (40, 20, 15))  # every image has the variance 1
    assert accuracy_of(n_images, n_images, over_classes=True) == (1.0, pytest.approx(n_as_loops))


@pytest.mark.parametrize("protocol", ["v2", "v2b"])
def test_interval_has_its_nominal_coverage(protocol):
    rng, n_covered, rate = np.random.default_rng(1), 0, np.array([0.8, 0.4])
    for _ in range(300):
        share, n = accuracy_of(rng.binomial(100, rate), np.array([100, 100]), protocol == "v2b")
        low, high = wilson(share, n, 0.9)
        n_covered += low <= rate.mean() <= high
    assert 0.84 < n_covered / 300 < 0.97


def test_a_group_without_images_has_no_accuracy():
    none = np.zeros(0, dtype=np.int64)
    assert np.isnan(accuracy_of(none, none, over_classes=False)[0])


# class, cluster, name: classes 0 and 1 are old, 2 and 3 new; 9 is a name that no class has
NAMED_IMAGES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([UNLABELED, UNLABELED, 0, 1, 9])),
    min_size=1,
    max_size=30,
)


def n_right_as_loops(y_true, y_pred, called):
    """Images with a name are compared by it; for the others all one-to-one maps to new classes are tried."""
    by_name, most = 0, 0
    for c, a in zip(y_true, called, strict=True):
        by_name += a != UNLABELED and a == c
    for classes in permutations([2, 3, None, None]):
        n = 0
        for c, k, a in zip(y_true, y_pred, called, strict=True):
            n += a == UNLABELED and c >= 2 and classes[k] == c
        most = max(most, n)
    return by_name + most


@settings(max_examples=100, deadline=None)
@given(NAMED_IMAGES)
def test_names_agree_with_the_formula_as_loops(images):
    y_true, y_pred, called = (np.array(column) for column in zip(*images, strict=True))
    result = names_right(y_true, y_pred, y_true < 2, called)
    assert result.sum() == n_right_as_loops(y_true.tolist(), y_pred.tolist(), called.tolist())


def test_unnamed_clusters_match_new_classes_only():
    y_true = np.array([0, 0, 1, 1, 2, 2, 2])
    y_pred = np.array([0, 0, 5, 5, 6, 6, 0])
    called = np.array([0, 1, UNLABELED, UNLABELED, UNLABELED, UNLABELED, 0])
    result = names_right(y_true, y_pred, y_true < 2, called)
    assert result.tolist() == [True, False, False, False, True, True, False]
    scores = evaluate(y_true, y_pred, y_true < 2, called=called)
    assert scores.names == pytest.approx({"all": 3 / 7, "old": 1 / 4, "new": 2 / 3})
    assert scores.all == pytest.approx(6 / 7)


def test_names_of_groups_without_images_have_no_score():
    y = np.array([0, 1])
    names = evaluate(y, y, np.array([True, True]), called=y).names
    assert (names["all"], names["old"]) == (1.0, 1.0)
    assert np.isnan(names["new"])
    assert evaluate(y, y, np.array([True, True])).names == {}


def test_names_lists_and_tensors_score_as_arrays_do():
    y_true, y_pred, is_old = drawn(n=60)
    scores = evaluate(y_true, y_pred, is_old)
    arrays = y_true, y_pred, is_old
    named = [f"class {each:02d}" for each in y_true], pd.Series(y_pred).map("cluster {:02d}".format), is_old.tolist()
    for same in (named, [each.tolist() for each in arrays], map(torch.tensor, arrays)):
        assert str(evaluate(*same)) == str(scores)


def test_old_and_new_must_be_true_and_false():
    y_true, y_pred, is_old = drawn(n=60)
    with pytest.raises(DataError, match=r"is_old of shape \(60,\) and type int64"):
        evaluate(y_true, y_pred, is_old.astype(int))
    with pytest.raises(DataError, match=r"is_old of shape \(59,\) and type bool, 60 images"):
        evaluate(y_true, y_pred, is_old[1:])
