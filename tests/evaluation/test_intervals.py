from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from justright.evaluation.intervals import (
    MeanDifference,
    clopper_pearson,
    exact_interval,
    mean_difference,
    n_more_checks,
    spread,
    wilson,
)

VALUES = np.array([0.1, 0.2, 0.3, 0.2])


def test_spread_is_the_sample_deviation_and_nan_for_one_value():
    assert spread([1.0, 2.0, 4.0]) == pytest.approx(np.sqrt(7 / 3))
    assert np.isnan(spread([1.0]))


def test_the_interval_is_that_of_student():
    result = mean_difference(VALUES)
    low, high = stats.t.interval(0.95, 3, loc=VALUES.mean(), scale=stats.sem(VALUES))
    assert (result.mean, result.low, result.high) == pytest.approx((0.2, low, high))


def test_draws_that_share_data_widen_the_interval():
    plain, wide = mean_difference(VALUES), mean_difference(VALUES, overlap=0.25)
    assert wide.high - wide.low == pytest.approx(np.sqrt(2) * (plain.high - plain.low))


def test_difference_prints_in_points():
    assert str(MeanDifference(0.012, -0.003, 0.027)) == "+1.2 [-0.3, +2.7]"


@pytest.mark.parametrize(("n_images", "n_checked"), [(40, 12), (25, 25), (30, 1)])
def test_exact_interval_covers_every_truth(n_images, n_checked):
    bounds = [exact_interval(x, n_checked, n_images, 0.9) for x in range(n_checked + 1)]
    for n_right in range(n_images + 1):
        chance = stats.hypergeom.pmf(np.arange(n_checked + 1), n_images, n_right, n_checked)
        covered = [low <= n_right / n_images <= high for low, high in bounds]
        assert chance @ covered >= 0.9 - 1e-9


def test_exact_interval_of_a_large_set_is_clopper_pearson():
    expected = stats.binomtest(37, 50).proportion_ci(0.95, method="exact")
    assert exact_interval(37, 50, 10**7, 0.95) == pytest.approx((expected.low, expected.high), abs=1e-3)
    assert clopper_pearson(37 / 50, 50.0, 0.95) == pytest.approx((expected.low, expected.high), abs=1e-9)


def wilson_as_loops(accuracy, n, level):
    """Shares p with |accuracy - p| within z standard deviations of a share of n images, by search over a grid."""
    z = stats.norm.ppf((1 + level) / 2)
    inside = [p for p in np.linspace(0, 1, 100_001).tolist() if (accuracy - p) ** 2 <= z**2 * p * (1 - p) / n + 1e-12]
    return min(inside), max(inside)


@pytest.mark.parametrize(("accuracy", "n"), [(0.0, 10), (1.0, 10), (1.0, 900), (0.3, 10), (0.5, 1), (0.99, 250)])
def test_wilson_agrees_with_loops_and_scipy(accuracy, n):
    low, high = wilson(accuracy, n, 0.95)
    assert low <= accuracy <= high
    assert low < high
    assert (low, high) == pytest.approx(wilson_as_loops(accuracy, n, 0.95), abs=2e-5)
    expected = stats.binomtest(round(accuracy * n), n).proportion_ci(0.95, method="wilson")
    if float(accuracy * n).is_integer():
        assert (low, high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("accuracy", "low", "high"), [(0.0, 0.0, 0.3), (1.0, 0.7, 1.0)])
def test_interval_has_a_width_at_0_and_1(accuracy, low, high):
    bounds = clopper_pearson(accuracy, 10.0, 0.95)
    assert bounds[0] == pytest.approx(low, abs=0.1)
    assert bounds[1] == pytest.approx(high, abs=0.1)


def n_more_checks_as_loops(accuracy, variance, n_checked, n_images, level, half_width):
    for n in range(max(n_checked, 1), n_images):
        mean_varies = variance / n * (1 - n / n_images)
        low, high = clopper_pearson(accuracy, accuracy * (1 - accuracy) / mean_varies, level)
        if (high - low) / 2 <= half_width:
            return n - n_checked
    return n_images - n_checked


@pytest.mark.parametrize(
    ("accuracy", "variance", "n_checked", "n_images"),
    [(0.7, 0.21, 0, 10**4), (0.7, 0.1, 50, 2000), (0.95, 0.04, 10, 500), (0.5, 0.25, 30, 50), (0.9, 0.09, 400, 900)],
)
def test_number_of_further_checks_agrees_with_loops(accuracy, variance, n_checked, n_images):
    request = accuracy, variance, n_checked, n_images, 0.95, 0.04
    assert n_more_checks(*request) == n_more_checks_as_loops(*request)


def test_a_few_dozen_checks_are_enough_if_all_are_right():
    n = n_more_checks(1.0, 0.0, 0, 10**6, 0.95, 0.04)
    low, _ = clopper_pearson(1.0, float(n), 0.95)
    assert low == pytest.approx(0.92, abs=0.002)
