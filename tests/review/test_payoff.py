from __future__ import annotations

import numpy as np
import pytest

from justright.review.cluster_lists import N_CLICKS, corrections_per_click


def corrections_per_click_as_loops(doubt, cluster, n_clusters):
    found = []
    for number in range(n_clusters):
        own = sorted((float(e) for e, home in zip(doubt, cluster, strict=True) if home == number), reverse=True)
        best = sum(e - (1 - e) for e in own) / N_CLICKS
        for m in range(len(own) + 1):
            corrections = sum(own[:m])
            best = max(best, corrections / (N_CLICKS + m + corrections))
        found.append(best)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_the_formula_written_as_loops(seed):
    rng = np.random.default_rng(seed)
    doubt, cluster = rng.beta(0.5, 1, 200), rng.integers(0, 12, 200)
    cluster[cluster == 5] = 6  # one without images
    expected = corrections_per_click_as_loops(doubt, cluster, 12)
    np.testing.assert_allclose(corrections_per_click(doubt, cluster, 12), expected)
    assert expected[5] == 0


def test_few_likely_errors_rank_above_many_unlikely_ones():
    doubt = np.concatenate([np.full(10, 0.9), np.zeros(90), np.full(100, 0.1)])  # 9 and 10 errors are expected
    few, many = corrections_per_click(doubt, np.repeat([0, 1], 100), 2)
    assert few > 2 * many


def test_completely_wrong_clusters_rank_first():
    doubt = np.concatenate([np.full(40, 0.8), np.full(40, 0.45)])
    whole, single = corrections_per_click(doubt, np.repeat([0, 1], 40), 2)
    assert whole == pytest.approx((32 - 8) / N_CLICKS)
    assert single < 1


def test_certain_images_have_no_payoff():
    assert corrections_per_click(np.zeros(4), np.array([0, 0, 1, 1]), 3).tolist() == [0, 0, 0]
