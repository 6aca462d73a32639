from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.report.fake_runs import fake_run

from justright.report.change import change
from justright.report.compared_run import Group


def group(values, half=0.0):
    return Group(tuple(fake_run(str(n), seed=n, accuracy=value, half=half) for n, value in enumerate(values)))


def test_without_noise_of_images_it_is_the_interval_of_welch():
    a, b = [0.70, 0.74, 0.71, 0.75], [0.60, 0.66, 0.64]
    found = change(group(a), group(b), "all")
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert found.points == pytest.approx(100 * (np.mean(a) - np.mean(b)))
    assert (found.low, found.high) == pytest.approx((100 * expected.low, 100 * expected.high))
    assert found.verdict() == "better"


def test_one_seed_each_leaves_the_noise_of_images_and_a_caveat():
    found = change(group([0.8], half=0.03), group([0.6], half=0.04), "new")
    assert found.high - found.points == pytest.approx(5.0)
    assert found.verdict() == "better on these images; with one seed it may still be chance"
    assert change(group([0.6], half=0.03), group([0.8], half=0.04), "new").verdict().startswith("worse")


@pytest.mark.parametrize(("a", "b"), [([0.62], [0.60]), ([0.62, 0.60, 0.66], [0.60, 0.65, 0.59])])
def test_a_small_difference_is_called_noise(a, b):
    assert change(group(a, half=0.03), group(b, half=0.03), "all").verdict() == "within the noise"


def test_no_scores_no_change():
    assert change(group([None]), group([0.5]), "all") is None
