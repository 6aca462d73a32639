from __future__ import annotations

import numpy as np
import pytest

from justright.diagnosis.hidden_classes import MAX_PER_CLASS, hidden_classes, sampled_rows
from justright.utils.errors import DegenerateError


def features(n, dim=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


def test_a_draw_hides_half_of_the_classes_and_half_of_the_images_of_the_others():
    labels = np.repeat(np.arange(10, 17), 8)
    source = hidden_classes(features(56), labels, features(20, seed=1), seed=0)
    known, is_old = source.draw(3)
    is_hidden = known == -1
    assert source.n_hidden == 3
    new = np.unique(source.own_labels[~is_old])
    assert len(new) == 3
    assert is_hidden[np.isin(source.own_labels, new)].all()
    for label in np.setdiff1d(labels, new):
        assert is_hidden[source.own_labels == label].sum() == 4
    assert (known[~is_hidden] == source.own_labels[~is_hidden]).all()
    assert not np.array_equal(source.draw(3)[0], source.draw(4)[0])
    np.testing.assert_array_equal(source.draw(3)[0], known)


def test_features_have_length_1():
    source = hidden_classes(features(40), np.repeat(np.arange(5), 8), features(9, seed=1), seed=0)
    np.testing.assert_allclose(np.linalg.norm(source.own, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(source.target, axis=1), 1)


def test_large_classes_are_sampled_and_tiny_ones_left_out():
    labels = np.repeat([0, 1, 2], [200, 3, 5])
    rows = sampled_rows(labels, seed=0, what="own")
    assert np.bincount(labels[rows]).tolist() == [MAX_PER_CLASS, 0, 5]


def test_too_few_classes_are_told():
    with pytest.raises(DegenerateError, match="2 own classes with at least 4"):
        hidden_classes(features(18), np.repeat([0, 1, 2], [8, 8, 2]), features(9), seed=0)
