from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from justright.evaluation.means import MeanDifference, mean_difference, spread

VALUES = np.array([0.1, 0.2, 0.3, 0.2])


def test_the_spread_is_that_of_a_sample_and_one_value_has_none():
    assert spread([1.0, 2.0, 4.0]) == pytest.approx(np.sqrt(7 / 3))
    assert np.isnan(spread([1.0]))


def test_the_interval_is_that_of_student():
    found = mean_difference(VALUES, 0.9)
    low, high = stats.t.interval(0.9, 3, loc=VALUES.mean(), scale=stats.sem(VALUES))
    assert (found.mean, found.low, found.high) == pytest.approx((0.2, low, high))


def test_draws_that_share_data_widen_the_interval():
    plain, wide = mean_difference(VALUES), mean_difference(VALUES, overlap=0.25)
    assert wide.high - wide.low == pytest.approx(np.sqrt(2) * (plain.high - plain.low))


def test_as_text_it_is_in_points():
    assert str(MeanDifference(0.012, -0.003, 0.027)) == "+1.2 [-0.3, +2.7]"
