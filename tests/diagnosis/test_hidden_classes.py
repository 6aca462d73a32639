from __future__ import annotations

import numpy as np
import pytest

from justright.diagnosis.hidden_classes import MAX_PER_CLASS, hidden_classes, thinned
from justright.errors import DegenerateError


def features(n, dim=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


def test_a_draw_hides_half_of_the_classes_and_half_of_the_images_of_the_others():
    labels = np.repeat(np.arange(10, 17), 8)
    source = hidden_classes(features(56), labels, features(20, seed=1), seed=0)
    problem = source.draw(3)
    assert source.n_hidden == 3
    new = np.unique(source.own_labels[~problem.is_old])
    assert len(new) == 3
    assert problem.is_judged[np.isin(source.own_labels, new)].all()
    for label in np.setdiff1d(labels, new):
        assert problem.is_judged[source.own_labels == label].sum() == 4
    np.testing.assert_array_equal(problem.labels == -1, problem.is_judged)
    assert (problem.labels[~problem.is_judged] == source.own_labels[~problem.is_judged]).all()
    assert not np.array_equal(source.draw(3).is_judged, source.draw(4).is_judged)
    np.testing.assert_array_equal(source.draw(3).is_judged, problem.is_judged)


def test_features_have_length_1():
    source = hidden_classes(features(40), np.repeat(np.arange(5), 8), features(9, seed=1), seed=0)
    np.testing.assert_allclose(np.linalg.norm(source.own, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(source.target, axis=1), 1)


def test_large_classes_are_thinned_and_tiny_ones_left_out():
    labels = np.repeat([0, 1, 2], [200, 3, 5])
    rows = thinned(labels, seed=0, what="own")
    assert np.bincount(labels[rows]).tolist() == [MAX_PER_CLASS, 0, 5]


def test_too_few_classes_are_told():
    with pytest.raises(DegenerateError, match="2 own classes with at least 4"):
        hidden_classes(features(18), np.repeat([0, 1, 2], [8, 8, 2]), features(9), seed=0)
