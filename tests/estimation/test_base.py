from __future__ import annotations

import numpy as np
import pytest
import torch

from justright.estimation.base import Given, middle_interval
from justright.utils.errors import DataError, DegenerateError


def test_interval_is_rounded_outward():
    assert middle_interval(list(range(1, 101)), 0.9, holding=50) == (5, 96)
    assert middle_interval([7], 0.5, holding=7) == (7, 7)


def test_interval_contains_the_estimate():
    assert middle_interval([5, 6, 7], 0.9, holding=9) == (5, 9)
    assert middle_interval([5, 6, 7], 0.9, holding=3) == (3, 7)


def test_no_resamples_and_invalid_levels_are_rejected():
    with pytest.raises(DegenerateError, match="0 resamples"):
        middle_interval([], 0.9, holding=1)
    for level in (0.0, 1.0):
        with pytest.raises(DataError, match="an interval of level"):
            middle_interval([1, 2], level, holding=1)


X = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]])


def test_labeled_pool_images_follow_the_counted_ones():
    given = Given.of(X, None, (X + 1, np.array([5, -1, 6])), normalize=False)
    assert given.n_counted == 3
    assert given.labels.tolist() == [-1, -1, -1, 5, 6]
    np.testing.assert_array_equal(given.x[3:], (X + 1)[[0, 2]])
    assert given.has_pool
    assert given.n_classes == 2


def test_features_are_scaled_and_tensors_become_arrays():
    given = Given.of(torch.from_numpy(X), None, (torch.from_numpy(X), np.array([0, 0, 1])), normalize=True)
    np.testing.assert_allclose(np.linalg.norm(given.x, axis=1), 1)


def test_own_labels_need_no_pool():
    given = Given.of(X, np.array([0, 0, -1]), None, normalize=False)
    assert (given.has_pool, given.n_classes) == (False, 1)
    given.require_classes(1, advice="")
    with pytest.raises(DegenerateError, match="1 labeled classes, 2 images"):
        given.require_classes(2, advice="")
    with pytest.raises(DegenerateError, match="2 labeled images, and a pool"):
        Given.of(X, np.array([0, 0, -1]), (X, np.array([0, 1, 1])), normalize=False)


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
def test_principal_axes_keep_distances_and_are_ordered(shape):
    x = np.random.default_rng(0).normal(size=shape)
    axes = Given.of(x, None, None, normalize=False).axes(min(shape))
    assert (np.diff(axes.var(axis=0)) <= 1e-9).all()
    distance = ((x[:, None] - x) ** 2).sum(axis=2)
    np.testing.assert_allclose(((axes[:, None] - axes) ** 2).sum(axis=2), distance, atol=1e-9)


def test_features_that_are_all_the_same_have_no_axes():
    with pytest.raises(DegenerateError, match="All features are the same"):
        Given.of(np.ones((4, 3)), None, None, normalize=False).axes(2)
    assert Given.of(X, None, None, normalize=False).axes(8).shape == (3, 2)
