from __future__ import annotations

import numpy as np
import pytest

from justright.selection.discriminant import discriminant_features
from justright.utils.errors import DegenerateError


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
