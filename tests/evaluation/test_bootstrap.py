from __future__ import annotations

import numpy as np
import pytest

from justright.evaluation.bootstrap import Tally
from justright.seeding import generator


def resample_as_loops(n_right, n_images, rng, averages_units):
    """Draw images one by one with replacement and score them anew."""
    unit = np.repeat(np.arange(len(n_images)), n_images)
    is_right = np.concatenate([np.arange(n) < r for r, n in zip(n_right, n_images, strict=True)])
    rows = rng.integers(0, len(unit), len(unit))
    if not averages_units:
        return is_right[rows].mean()
    return np.mean([is_right[rows][unit[rows] == u].mean() for u in np.unique(unit[rows])])


@pytest.mark.parametrize("averages_units", [False, True])
def test_drawing_counts_has_the_law_of_drawing_images(averages_units):
    n_right, n_images = np.array([30, 5, 12]), np.array([40, 20, 15])
    tally = Tally(n_right, n_images, np.ones((1, 3), dtype=bool), averages_units)
    rng = np.random.default_rng(0)
    slow = [resample_as_loops(n_right, n_images, rng, averages_units) for _ in range(4000)]
    ((low, high),) = tally.intervals(generator(0, "test"), 4000, 0.95)
    assert (low, high) == pytest.approx(tuple(np.quantile(slow, [0.025, 0.975])), abs=0.015)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng, n_covered, rate = np.random.default_rng(1), 0, np.array([0.8, 0.4])
    for _ in range(300):
        n_right = rng.binomial(100, rate)
        tally = Tally(n_right, np.array([100, 100]), np.ones((1, 2), dtype=bool), averages_units=False)
        ((low, high),) = tally.intervals(rng, 300, 0.9)
        n_covered += bool(low <= rate.mean() <= high)
    assert 0.84 < n_covered / 300 < 0.97


def test_a_group_without_images_has_no_interval_and_no_accuracy():
    tally = Tally(np.array([1]), np.array([3]), np.array([[True], [False]]), averages_units=False)
    assert np.isnan(tally.accuracy()).tolist() == [False, True]
    assert np.isnan(tally.intervals(generator(0, "test"), 10, 0.95)).tolist() == [[False, False], [True, True]]
