from __future__ import annotations

import numpy as np
import pytest
from tests.discovery.tiny import drawn_images

from justright.data import ImageSet
from justright.data.columns import column, with_columns
from justright.estimation.spread import SpreadCounter
from justright.features.table import FeatureTable
from justright.runs.counting import check_k, counted, counted_tables, fitted_counter, k_note, with_margin
from justright.runs.problem import make_problem
from justright.utils.errors import DegenerateError

ESTIMATE = {"n_categories": 40, "interval": [33, 51]}


@pytest.mark.parametrize(
    ("estimate", "n_known", "expected"),
    [
        (ESTIMATE, 20, 42),  # 40 + 0.4 * 0.5 * 11 = 42.2
        (ESTIMATE, 4, 44),
        (ESTIMATE | {"interval": [20, 90]}, 4, 50),  # at most a quarter more
        (ESTIMATE, 40, 40),  # all are known
        (ESTIMATE, 0, 40),
        (ESTIMATE | {"interval": None}, 20, 40),
    ],
)
def test_margin_grows_with_the_interval_and_the_share_of_new_categories(estimate, n_known, expected):
    assert with_margin(estimate, n_known) == expected


def test_counter_gets_own_classes(monkeypatch):
    def noted(counter, *given):
        counter.given = given
        return counter

    monkeypatch.setattr(SpreadCounter, "fit", noted)
    pool = FeatureTable.of(np.arange(8.0, dtype=np.float32).reshape(4, 2), label=np.array([0, 1, 1, 2]))
    target = FeatureTable.of(np.full((2, 2), 9.0, np.float32))
    features, labels, *_ = fitted_counter("spread", pool, target, (1,), seed=0).given
    assert features.tolist() == [[2.0, 3.0], [4.0, 5.0], [9.0, 9.0], [9.0, 9.0]]
    assert labels.tolist() == [1, 1, -1, -1]


def test_without_own_classes_only_the_target_is_counted():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(30, 16))
    label = np.repeat(np.arange(30), 20)
    x = (centers[label] + 0.2 * rng.normal(size=(600, 16))).astype(np.float32)
    pool, target = FeatureTable.of(x[label < 20], label=label[label < 20]), FeatureTable.of(x[label >= 20])
    found = counted("combined", pool, target, (), seed=0)
    assert (found["labeled_classes"], found["images"]) == (0, 200)
    assert abs(found["estimates"]["combined"]["n_categories"] - 10) <= 2
    assert counted("combined", pool, target, (1, 2), seed=0)["labeled_classes"] == 2


@pytest.mark.parametrize("given", [33, 40, 51])
def test_no_warning_for_k_inside_the_interval(given):
    assert k_note(given, ESTIMATE) is None


@pytest.mark.parametrize(("given", "side", "cost"), [(32, "small", "share clusters"), (52, "large", "are split")])
def test_warning_for_k_outside_the_interval(given, side, cost):
    note = k_note(given, ESTIMATE)
    assert f"--k {given} looks too {side}" in note
    assert "40 categories (33 to 51)" in note
    assert f"categories {cost}" in note


def test_no_warning_without_an_interval():
    assert k_note(2, ESTIMATE | {"interval": None}) is None


def test_k_below_known_classes_or_above_images_raises():
    with pytest.raises(DegenerateError) as error:
        check_k(10, n_known=40, n_images=90)
    assert "--k 10 with 40 known classes. --k counts known and new categories: at least 41 here" in str(error.value)
    with pytest.raises(DegenerateError, match="--k 5,000 for 90 images of the target and 40 known classes"):
        check_k(5000, n_known=40, n_images=90)
    for k in (40, 41, 130):
        check_k(k, n_known=40, n_images=90)


@pytest.mark.parametrize(
    ("n_given", "n_reviewed", "n_labeled", "n_unlabeled"),
    [
        (0, 0, 24, 30),  # nothing changes
        (4, 4, 20, 30),  # reviewed images do not tell how wide a class is
        (0, 4, 20, 30),  # not even where the target does not hold them
        (4, 0, 20, 30),  # nor do others of the target, as long as there are enough beside them
        (24, 0, 24, 6),  # where there are not, they do, and each counts once
        (24, 24, 24, 6),  # and reviewed ones, because K without any label is further off
        (24, 18, 6, 24),  # three other classes are enough
        (24, 20, 24, 6),  # two are not
    ],
)
def test_reviewed_images_count_as_unlabeled(n_given, n_reviewed, n_labeled, n_unlabeled):
    images = drawn_images(np.repeat(np.arange(12), 2).tolist())
    reviewed = column("split", ["reviewed" if row < n_reviewed else None for row in range(24)], 24)
    labeled = ImageSet(with_columns(images.table, {"split": reviewed}), images.readers)
    others = drawn_images([0] * (30 - n_given), seed=1)
    target = ImageSet.concat([images.take(range(n_given)), others]).without_labels()
    problem, copies = make_problem([], labeled, target).with_given_labels()
    assert copies.n_given == n_given
    pool = FeatureTable.of(np.zeros((24, 2), np.float32), label=problem.pool.images.labels)
    tables = counted_tables(problem, pool, FeatureTable.of(np.zeros((30, 2), np.float32)))
    assert tuple(map(len, tables)) == (n_labeled, n_unlabeled)


def test_k_is_at_least_the_number_of_known_classes():
    x = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    found = counted("combined", FeatureTable.of(x[:0], label=np.zeros(0, np.int64)), FeatureTable.of(x), range(40), 0)
    assert found["estimates"]["combined"]["n_categories"] >= 40
    assert min(found["estimates"]["combined"]["interval"]) >= 40
    assert found["labeled_classes"] == 40
