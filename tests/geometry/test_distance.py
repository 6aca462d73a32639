from __future__ import annotations

import math

import numpy as np
import pytest

from justright.geometry import DISTANCES, cosine_distance, euclidean_distance


def test_euclidean_distance_agrees_with_loops():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    expected = [[math.dist(x, y) for y in b.tolist()] for x in a.tolist()]
    assert euclidean_distance(a, b) == pytest.approx(np.array(expected), abs=1e-12)


def test_small_distances_far_from_the_origin_stay_accurate():
    a = np.array([[1e6, 1e6], [1e6 + 1e-3, 1e6]])
    assert euclidean_distance(a, a)[0, 1] == pytest.approx(1e-3, rel=1e-4)


def test_cosine_distance_ignores_length_and_ranges_from_0_to_2():
    a = np.array([[1.0, 0.0]])
    b = np.array([[5.0, 0.0], [0.0, 0.1], [-2.0, 0.0]])
    assert cosine_distance(a, b) == pytest.approx(np.array([[0.0, 1.0, 2.0]]))


def test_the_metrics_of_table_a7_are_all_there():
    assert set(DISTANCES) == {"euclidean", "cosine", "l2"}
