from __future__ import annotations

import numpy as np
import pytest

from justright.selection.diagnosis import MAX_PER_CLASS, discriminant_features, hidden_classes, sampled_rows
from justright.utils.errors import DegenerateError


def features(n, dim=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


def test_a_draw_hides_half_of_the_classes():
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


def test_two_classes_leave_the_one_direction_between_them():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    pool = rng.normal(size=(400, 3)) + 4.0 * np.outer(labels, [1.0, 0.0, 0.0])
    seen = discriminant_features(pool, labels, np.eye(3))
    assert seen.shape == (3, 1)
    moved = np.abs(seen - discriminant_features(pool, labels, np.zeros((1, 3)))).ravel()
    assert moved[0] > 5 * moved[1:].max()


def test_weights_count_like_repeated_images():
    rng = np.random.default_rng(0)
    pool, labels, target = rng.normal(size=(30, 4)), np.repeat(np.arange(3), 10), rng.normal(size=(5, 4))
    twice = np.concatenate([np.arange(30), np.arange(10)])
    weighted = discriminant_features(pool, labels, target, np.repeat([2.0, 1.0, 1.0], 10))
    repeated = discriminant_features(pool[twice], labels[twice], target)
    assert np.abs(weighted) == pytest.approx(np.abs(repeated), abs=1e-9)  # a direction may point either way


def test_copies_of_one_feature_per_class_have_no_spread_to_measure():
    pool = np.repeat(np.eye(2), 3, axis=0)
    with pytest.raises(DegenerateError, match="copies of one feature"):
        discriminant_features(pool, np.repeat([0, 1], 3), np.eye(2))
