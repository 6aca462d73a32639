from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from justright.discovery.evidence import (
    COEFFICIENTS,
    COMMON_ERROR,
    INTERCEPT,
    LEAST,
    LEVEL,
    MOST,
    NAMES,
    expected_right,
    probability_right,
)


def test_agrees_with_loops():
    rows = np.random.default_rng(0).normal(size=(30, len(NAMES))).astype(np.float32)
    for row, found in zip(rows, probability_right(rows), strict=True):
        total = INTERCEPT + sum(COEFFICIENTS[name] * float(value) for name, value in zip(NAMES, row, strict=True))
        assert found == pytest.approx(min(max(1 / (1 + math.exp(-total)), LEAST), MOST), abs=1e-6)


def row(**changes):
    columns = dict.fromkeys(NAMES, 0.5) | {"large": 0.0, "below": 0.0, "hidden": 0.0, "unchecked": 0.0}
    return np.array([list((columns | changes).values())], dtype=np.float32)


def test_confidence_rises_with_evidence():
    usual = probability_right(row())[0]
    assert probability_right(row(alike=0.9))[0] > usual
    assert probability_right(row(vote=0.9))[0] > usual
    assert probability_right(row(repeated=0.9))[0] > usual
    assert probability_right(row(large=1.0))[0] < usual
    assert probability_right(row(below=0.4))[0] < usual
    assert probability_right(row(unchecked=1.0))[0] < usual
    assert probability_right(row(hidden=-0.5))[0] < usual < probability_right(row(hidden=0.3))[0]


def test_expected_number_and_interval_follow_the_formula():
    p = np.random.default_rng(1).random(500).astype(np.float32)
    found, z = expected_right(p), NormalDist().inv_cdf((1 + LEVEL) / 2)
    variance = sum(float(each) * (1 - float(each)) for each in p) + (COMMON_ERROR * 500) ** 2
    assert found.expected == round(sum(map(float, p)))
    assert found.low == math.floor(float(p.astype(float).sum()) - z * math.sqrt(variance))
    assert found.high == math.ceil(float(p.astype(float).sum()) + z * math.sqrt(variance))


def test_interval_is_wider_where_nothing_was_checked():
    p = np.full(200, 0.6)
    checked, unchecked = expected_right(p), expected_right(p, is_checked=False)
    assert unchecked.low < checked.low < checked.expected == unchecked.expected < checked.high < unchecked.high


def test_interval_stays_between_0_and_all_images():
    assert (expected_right(np.full(50, 0.99)).high, expected_right(np.full(50, 0.02)).low) == (50, 0)
    nothing = expected_right(np.zeros(0))
    assert (nothing.n, nothing.expected, nothing.low, nothing.high) == (0, 0, 0, 0)


def test_intervals_cover_the_truth_in_a_simulation():
    """Problems whose images are off together by as much as was measured, and by chance."""
    rng, held = np.random.default_rng(2), 0
    for _ in range(400):
        p = rng.beta(4, 2, size=int(rng.integers(100, 2000)))
        shifted = np.clip(p + COMMON_ERROR * rng.normal(), 0, 1)
        right, found = int(np.sum(rng.random(len(p)) < shifted)), expected_right(p)
        held += found.low <= right <= found.high
    assert 0.86 <= held / 400 <= 0.96
