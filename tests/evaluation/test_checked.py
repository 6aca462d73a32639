from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from justright.evaluation import HALF_WIDTH, estimate_accuracy, forecast_checks
from justright.evaluation.intervals import n_more_checks, wilson
from justright.utils.errors import DataError, DegenerateError

N_IMAGES = 3000


def pool_of_verdicts(seed: int, sharpness: float):
    """Images with a calibrated confidence: near 0 and 1 if it is sharp, else near its mean of 0.7."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(0.7 / sharpness, 0.3 / sharpness, N_IMAGES)
    return rng.random(N_IMAGES) < confidence, confidence


def simulate(is_right, n_checked: int, n_runs: int = 200, **known):
    """The coverage of the interval and its mean width."""
    rng, truth, n_covered, width = np.random.default_rng(7), is_right.mean(), 0, 0.0
    for _ in range(n_runs):
        checked = rng.choice(N_IMAGES, n_checked, replace=False)
        estimate = estimate_accuracy(checked, is_right[checked], N_IMAGES, **known)
        n_covered += bool(estimate.low <= truth <= estimate.high)
        width += (estimate.high - estimate.low) / n_runs
    return n_covered / n_runs, width


def test_intervals_cover_and_confidence_narrows_them():
    is_right, confidence = pool_of_verdicts(0, sharpness=4.0)
    plain_coverage, plain_width = simulate(is_right, 120)
    powered_coverage, powered_width = simulate(is_right, 120, confidence=confidence)
    assert 0.92 <= plain_coverage <= 0.995
    assert 0.92 <= powered_coverage <= 0.985
    assert powered_width < 0.75 * plain_width


def test_uninformative_confidence_does_no_harm():
    is_right, _ = pool_of_verdicts(1, sharpness=4.0)
    noise = np.random.default_rng(2).random(N_IMAGES)
    _, plain_width = simulate(is_right, 100, n_runs=60)
    coverage, width = simulate(is_right, 100, n_runs=200, confidence=noise)
    assert coverage >= 0.91
    assert width < 1.1 * plain_width


def test_few_wrong_checks_fall_back_to_the_plain_interval():
    is_right, confidence = pool_of_verdicts(0, sharpness=4.0)
    checked = np.concatenate([np.flatnonzero(is_right)[:40], np.flatnonzero(~is_right)[:3]])
    plain, powered = (estimate_accuracy(checked, is_right[checked], N_IMAGES, confidence=f) for f in (None, confidence))
    assert replace(plain, n_more=0) == replace(powered, n_more=0)


def test_strata_cover_and_correct_a_draw_that_favors_some_clusters():
    rng = np.random.default_rng(3)
    clusters = rng.choice(8, N_IMAGES, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
    is_right = rng.random(N_IMAGES) < np.linspace(0.95, 0.2, 8)[clusters]
    n_covered, estimates, plain = 0, [], []
    for _ in range(200):
        checked = np.concatenate([rng.choice(np.flatnonzero(clusters == k), 12, replace=False) for k in range(8)])
        estimate = estimate_accuracy(checked, is_right[checked], N_IMAGES, clusters=clusters)
        n_covered += bool(estimate.low <= is_right.mean() <= estimate.high)
        estimates.append(estimate.accuracy)
        plain.append(is_right[checked].mean())
    assert 0.91 <= n_covered / 200 <= 1.0
    assert np.mean(estimates) == pytest.approx(is_right.mean(), abs=0.01)
    assert (
        abs(np.mean(plain) - is_right.mean()) > 0.1
    )  # equally many checks per cluster are no random sample of all images


def test_one_check_per_stratum_gives_an_interval():
    is_right, confidence = pool_of_verdicts(4, sharpness=2.0)
    clusters = np.arange(N_IMAGES) % 60
    checked = np.arange(60)
    estimate = estimate_accuracy(checked, is_right[checked], N_IMAGES, clusters=clusters, confidence=confidence)
    assert 0 < estimate.low < estimate.accuracy < estimate.high < 1


def stratified_estimate_as_loops(checked, is_right, n_images, clusters, confidence):
    """sum_h W_h (lambda mean_h f + mean_{s_h}(y - lambda f)), lambda by least squares within strata."""
    above = below = 0.0
    groups = {h: [i for i in range(len(checked)) if clusters[checked[i]] == h] for h in set(clusters.tolist())}
    for rows in groups.values():
        f_mean = sum(confidence[checked[i]] for i in rows) / len(rows)
        y_mean = sum(is_right[i] for i in rows) / len(rows)
        for i in rows:
            above += (confidence[checked[i]] - f_mean) * (is_right[i] - y_mean)
            below += (confidence[checked[i]] - f_mean) ** 2
    slope, total = above / below, 0.0
    for h, rows in groups.items():
        members = [j for j in range(n_images) if clusters[j] == h]
        predicted = slope * sum(confidence[j] for j in members) / len(members)
        correction = sum(is_right[i] - slope * confidence[checked[i]] for i in rows) / len(rows)
        total += len(members) / n_images * (predicted + correction)
    return total


def test_agrees_with_the_formula_written_as_loops():
    is_right, confidence = pool_of_verdicts(5, sharpness=2.0)
    is_right, confidence, clusters = is_right[:200], confidence[:200], np.arange(200) % 3
    checked = np.random.default_rng(0).choice(200, 60, replace=False)
    estimate = estimate_accuracy(checked, is_right[checked], 200, clusters=clusters, confidence=confidence)
    expected = stratified_estimate_as_loops(checked, is_right[checked], 200, clusters, confidence)
    assert estimate.accuracy == pytest.approx(expected)


@pytest.mark.parametrize("n_checked", [0, 20, 100])
def test_forecast_number_of_checks_is_enough(n_checked):
    is_right, confidence = pool_of_verdicts(6, sharpness=1.0)
    order = np.random.default_rng(1).permutation(N_IMAGES)

    def after(n):
        return estimate_accuracy(order[:n], is_right[order[:n]], N_IMAGES, confidence=confidence)

    n_more = after(n_checked).n_more if n_checked else forecast_checks(confidence)
    then = after(n_checked + n_more)
    # from 20 checks no slope is fitted, so its effect is not part of the forecast
    assert (0.75 if n_checked == 20 else 0.9) * HALF_WIDTH < (then.high - then.low) / 2 < 1.1 * HALF_WIDTH
    assert after(2 * (n_checked + n_more)).n_more == 0


def forecast_as_loops(confidence, n_checked, accuracy, variance):
    mean = spread = 0.0
    for f in confidence:
        f = min(max(f, 0.05), 0.95)
        mean, spread = mean + f / len(confidence), spread + f * (1 - f) / len(confidence)
    mean = (n_checked * accuracy + 16 * mean) / (n_checked + 16)
    spread = (n_checked * variance + 16 * spread) / (n_checked + 16)
    return n_more_checks(mean, spread, n_checked, len(confidence), 0.95, HALF_WIDTH)


def test_the_forecast_agrees_with_its_formula_written_as_loops():
    _, confidence = pool_of_verdicts(3, sharpness=2.0)
    for looked in ((0, 0.0, 0.0), (10, 0.4, 0.2), (90, 0.8, 0.1)):
        assert forecast_checks(confidence, *looked) == forecast_as_loops(confidence.tolist(), *looked)
    assert forecast_checks(np.ones(1000)) > 50, "confidences of 1 are clipped"
    assert forecast_checks(np.ones(0)) == 0


@pytest.mark.parametrize("n_checked", [10, 40, 120])
@pytest.mark.parametrize("distortion", ["none", "overconfident", "all near 1", "inverted"])
def test_intervals_cover_with_few_checks_and_wrong_confidence(n_checked, distortion):
    is_right, calibrated = pool_of_verdicts(8, sharpness=1.0)
    confidence = {
        "none": calibrated,
        "overconfident": calibrated**0.2,
        "all near 1": 0.97 + 0.03 * calibrated,
        "inverted": 1 - calibrated,
    }[distortion]
    coverage, _ = simulate(is_right, n_checked, confidence=confidence)
    assert coverage >= 0.91  # 0.95 less two and a half standard errors of 200 runs


def test_the_plain_interval_is_reported():
    is_right, confidence = pool_of_verdicts(5, sharpness=4.0)
    checked = np.random.default_rng(0).choice(N_IMAGES, 100, replace=False)
    result = estimate_accuracy(checked, is_right[checked], N_IMAGES, confidence=confidence)
    low, high = wilson(float(is_right[checked].mean()), 100, 0.95)
    assert (result.plain_low, result.plain_high) == (low, high)
    assert result.length_ratio == result.to_dict()["length_ratio"] == (result.high - result.low) / (high - low) < 0.75
    expected = (
        f"with the confidences it is {result.length_ratio:.2f} times as long. {result.n_more} more checks narrow it"
    )
    assert expected in str(result)
    few = estimate_accuracy(checked[:9], is_right[checked[:9]], N_IMAGES, confidence=confidence)
    assert few.length_ratio > 1
    assert "with the confidences" not in str(few)


def test_interval_has_no_width_once_all_images_are_checked():
    estimate = estimate_accuracy(np.arange(4), np.array([True, True, False, True]), 4)
    assert estimate.accuracy == estimate.low == estimate.high == 0.75
    assert estimate.n_more == 0
    assert estimate.to_dict()["n_effective"] is None


def test_text_has_estimate_interval_and_counts():
    text = str(estimate_accuracy(np.arange(50), np.arange(50) < 40, 1000))
    assert text.startswith("Accuracy about 80.0, 95 % interval ")
    assert "from 50 checks of 1,000 images" in text


def test_invalid_samples_are_rejected():
    yes = np.array([True])
    with pytest.raises(DegenerateError, match="no image was checked"):
        estimate_accuracy(np.array([], dtype=int), np.array([], dtype=bool), 5)
    with pytest.raises(DegenerateError, match="1 of 2 clusters"):
        estimate_accuracy(np.array([0]), yes, 2, clusters=np.array([0, 1]))
    with pytest.raises(DataError, match="1 distinct"):
        estimate_accuracy(np.array([1, 1]), np.array([True, True]), 5)
    with pytest.raises(DataError, match="from 5 to 5"):
        estimate_accuracy(np.array([5]), yes, 5)
    with pytest.raises(DataError, match="confidence of shape"):
        estimate_accuracy(np.array([0]), yes, 2, confidence=np.array([0.5]))
    with pytest.raises(DataError, match="not finite"):
        estimate_accuracy(np.array([0]), yes, 1, confidence=np.array([np.nan]))
