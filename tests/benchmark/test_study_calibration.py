from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.study_answers import calibration
from sklearn.metrics import roc_auc_score

from justright.utils.errors import DegenerateError


def drawn(n=237, seed=0):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n), 2)  # with ties
    return confidence, rng.random(n) < 0.3 + 0.5 * confidence


def error_as_loops(confidence, is_right, n_bins):
    order = sorted(range(len(confidence)), key=lambda i: confidence[i])
    error, start = 0.0, 0
    for b in range(n_bins):
        size = len(order) // n_bins + (b < len(order) % n_bins)
        images = order[start : start + size]
        start += size
        sure = sum(confidence[i] for i in images) / size
        right = sum(is_right[i] for i in images) / size
        error += size / len(order) * abs(sure - right)
    return error


def auc_as_loops(confidence, is_right):
    won, n = 0.0, 0
    for i in np.flatnonzero(is_right):
        for j in np.flatnonzero(~is_right):
            won += 1.0 if confidence[i] > confidence[j] else 0.5 if confidence[i] == confidence[j] else 0.0
            n += 1
    return won / n


def test_agrees_with_the_formulas_written_as_loops():
    confidence, is_right = drawn()
    result = calibration(confidence, is_right)
    assert result.error == pytest.approx(error_as_loops(confidence, is_right, 10))
    assert result.auc == pytest.approx(auc_as_loops(confidence, is_right))
    assert result.auc == pytest.approx(roc_auc_score(is_right, confidence))
    assert (result.accuracy, result.confidence) == pytest.approx((is_right.mean(), confidence.mean()))
    assert sum(n for n, _, _ in result.bins) == result.n_images == 237
    assert [mean for _, mean, _ in result.bins] == sorted(mean for _, mean, _ in result.bins)


def test_split_handles_few_and_equal_images():
    result = calibration(np.array([0.5, 0.75]), np.array([True, True]))
    assert len(result.bins) == 2
    assert result.error == pytest.approx(0.375)
    assert math.isnan(result.auc)
    with pytest.raises(DegenerateError, match="no confidences"):
        calibration(np.zeros(0), np.zeros(0, dtype=bool))
