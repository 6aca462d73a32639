from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from justright.evaluation.comparisons import ProblemDifferences, holm


def test_few_problems_have_students_interval_and_p_values():
    values = np.array([1.0, 2.5, -0.5, 3.0, 1.5])
    result = ProblemDifferences(values)
    assert result.interval() == pytest.approx(stats.t.interval(0.95, 4, values.mean(), stats.sem(values)))
    assert result.p_above(1.0) == pytest.approx(stats.ttest_1samp(values, 1.0, alternative="greater").pvalue)
    assert result.p_below(2.0) == pytest.approx(stats.ttest_1samp(values, 2.0, alternative="less").pvalue)


def resampled_as_loops(values, n_resamples, rng):
    """The studentized bootstrap with loops: T of each resample around the mean of the sample."""
    mean, n, result = sum(values) / len(values), len(values), []
    for _ in range(n_resamples):
        drawn = [values[rng.integers(n)] for _ in range(n)]
        own = sum(drawn) / n
        error = math.sqrt(sum((value - own) ** 2 for value in drawn) / (n - 1) / n)
        result.append((own - mean) / error)
    return sorted(result)


def test_many_problems_have_the_studentized_bootstrap():
    rng = np.random.default_rng(0)
    values = rng.exponential(2.0, size=12)
    low, high = ProblemDifferences(values).interval()
    t = resampled_as_loops(values.tolist(), 4000, rng)
    error = stats.sem(values)
    assert low == pytest.approx(values.mean() - t[int(0.975 * 4000)] * error, abs=0.2)
    assert high == pytest.approx(values.mean() - t[int(0.025 * 4000)] * error, abs=0.4)


@pytest.mark.parametrize(("n", "sd_seed"), [(6, 1.0), (12, 1.0), (24, 1.0)])
def test_intervals_over_problems_cover_the_truth_in_a_simulation(n, sd_seed):
    """Seeds repeat a problem, so an interval over runs would be too short."""
    rng, n_covered, n_naive = np.random.default_rng(1), 0, 0
    for _ in range(400):
        of_problem = 1.0 + rng.normal(0, 2.0, size=n)
        runs = of_problem[:, None] + rng.normal(0, sd_seed, size=(n, 3))
        low, high = ProblemDifferences(runs.mean(axis=1)).interval()
        n_covered += low <= 1.0 <= high
        flat = runs.ravel()
        ends = stats.t.interval(0.95, len(flat) - 1, flat.mean(), stats.sem(flat))
        n_naive += ends[0] <= 1.0 <= ends[1]
    assert 0.91 <= n_covered / 400 <= 0.99
    assert n_naive < n_covered - 20


def test_equivalence_needs_both_ends_inside_the_margin():
    tight, wide = (
        ProblemDifferences(np.array([0.1, -0.2, 0.3, 0.0, -0.1])),
        ProblemDifferences(np.array([3.0, -3.0, 1])),
    )
    assert tight.p_equivalence(2.0) < 0.001 < 0.4 < min(tight.p_above(), tight.p_below())
    assert wide.p_equivalence(2.0) > 0.1


def test_equal_differences_are_certain():
    same = ProblemDifferences(np.array([1.5, 1.5, 1.5]))
    assert same.interval() == (1.5, 1.5)
    assert (same.p_above(), same.p_below()) == (0.0, 1.0)
    assert same.p_equivalence(2.0) == 0.0
    assert same.p_equivalence(1.0) == 1.0


def test_holm_multiplies_by_the_number_of_remaining_tests():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_keeps_false_discoveries_below_the_level_in_a_simulation():
    rng = np.random.default_rng(2)
    families = rng.random((2000, 11))
    n_false = sum(min(holm(p_values.tolist())) <= 0.05 for p_values in families)
    assert n_false / 2000 < 0.065
