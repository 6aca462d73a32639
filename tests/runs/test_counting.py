from __future__ import annotations

import numpy as np
import pytest

from justright.errors import DegenerateError
from justright.estimation.spread import SpreadCounter
from justright.features.table import FeatureTable
from justright.runs.counting import counted, fitted_counter, k_note, refuse_k

ESTIMATE = {"n_categories": 40, "interval": [33, 51]}


def test_a_counter_is_given_the_targets_own_classes_where_it_has_some(monkeypatch):
    def noted(counter, *given):
        counter.given = given
        return counter

    monkeypatch.setattr(SpreadCounter, "fit", noted)
    pool = FeatureTable.of(np.arange(8.0, dtype=np.float32).reshape(4, 2), label=np.array([0, 1, 1, 2]))
    target = FeatureTable.of(np.full((2, 2), 9.0, np.float32))
    features, labels, *_ = fitted_counter("spread", pool, target, (1,), seed=0).given
    assert features.tolist() == [[2.0, 3.0], [4.0, 5.0], [9.0, 9.0], [9.0, 9.0]]
    assert labels.tolist() == [1, 1, -1, -1]


def test_without_own_classes_the_target_is_counted_alone():
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
def test_nothing_is_said_of_a_k_inside_the_interval(given):
    assert k_note(given, ESTIMATE) is None


@pytest.mark.parametrize(("given", "side", "cost"), [(32, "small", "share clusters"), (52, "large", "are split")])
def test_a_k_outside_of_it_is_doubted_with_the_estimate_and_what_it_costs(given, side, cost):
    said = k_note(given, ESTIMATE)
    assert f"--k {given} looks too {side}" in said
    assert "40 categories (33 to 51)" in said
    assert f"categories {cost}" in said


def test_an_estimate_without_an_interval_doubts_nothing():
    assert k_note(2, ESTIMATE | {"interval": None}) is None


def test_a_k_below_the_known_classes_or_beyond_the_images_is_refused():
    with pytest.raises(DegenerateError) as error:
        refuse_k(10, n_known=40, n_images=90)
    assert (
        "--k 10 with 40 known classes. --k counts known and new categories: at least 41 here, or leave it out"
        in str(error.value)
    )
    with pytest.raises(DegenerateError, match="--k 5,000 for 90 images of the target and 40 known classes"):
        refuse_k(5000, n_known=40, n_images=90)
    for k in (40, 41, 130):
        refuse_k(k, n_known=40, n_images=90)
