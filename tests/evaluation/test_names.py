from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from justright.evaluation import evaluate, names_right
from justright.utils.types import UNLABELED

# class, cluster, name: classes 0 and 1 are old, 2 and 3 new; 9 is a name that no class has
IMAGES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([UNLABELED, UNLABELED, 0, 1, 9])),
    min_size=1,
    max_size=30,
)


def n_right_as_loops(y_true, y_pred, called):
    """Names are compared, and of all one-to-one maps from clusters to new classes the best one counts."""
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
@given(IMAGES)
def test_agrees_with_the_formula_written_as_loops(images):
    y_true, y_pred, called = (np.array(column) for column in zip(*images, strict=True))
    found = names_right(y_true, y_pred, y_true < 2, called)
    assert found.sum() == n_right_as_loops(y_true.tolist(), y_pred.tolist(), called.tolist())


def test_a_name_must_be_that_of_the_class_and_a_cluster_without_one_cannot_stand_for_an_old_class():
    y_true = np.array([0, 0, 1, 1, 2, 2, 2])
    y_pred = np.array([0, 0, 5, 5, 6, 6, 0])
    called = np.array([0, 1, UNLABELED, UNLABELED, UNLABELED, UNLABELED, 0])
    found = names_right(y_true, y_pred, y_true < 2, called)
    assert found.tolist() == [True, False, False, False, True, True, False]
    scores = evaluate(y_true, y_pred, y_true < 2, called=called)
    assert scores.names == pytest.approx({"all": 3 / 7, "old": 1 / 4, "new": 2 / 3})
    assert scores.all == pytest.approx(6 / 7)


def test_groups_without_images_have_no_score():
    y = np.array([0, 1])
    names = evaluate(y, y, np.array([True, True]), called=y).names
    assert (names["all"], names["old"]) == (1.0, 1.0)
    assert np.isnan(names["new"])
    assert evaluate(y, y, np.array([True, True])).names == {}
