from __future__ import annotations

import numpy as np
import pytest

from justright.errors import DegenerateError
from justright.review.cluster_actions import cluster_again

ROWS = np.arange(100, 130)


def two_heaps():
    rng = np.random.default_rng(0)
    features = np.zeros((200, 4), dtype=np.float32)
    features[100:110] = [1, 0, 0, 0]
    features[110:130] = [0, 1, 0, 0]
    return features + 0.01 * rng.normal(size=features.shape).astype(np.float32)


def test_two_heaps_come_apart_and_the_larger_one_stays():
    assert cluster_again(ROWS, two_heaps(), 2, seed=0) == [list(range(100, 110))]


def test_same_seed_same_parts():
    assert cluster_again(ROWS, two_heaps(), 5, seed=1) == cluster_again(ROWS, two_heaps(), 5, seed=1)


def test_parts_hold_no_image_twice_and_leave_the_largest():
    parts = cluster_again(ROWS, two_heaps(), 4, seed=0)
    gone = [row for part in parts for row in part]
    assert len(set(gone)) == len(gone)
    assert len(ROWS) - len(gone) >= max(map(len, parts))


def test_equal_features_or_too_few_images_are_refused():
    with pytest.raises(DegenerateError):
        cluster_again(ROWS, np.ones((200, 4), dtype=np.float32), 2, seed=0)
    with pytest.raises(DegenerateError, match="2 images cannot make 3"):
        cluster_again(ROWS[:2], two_heaps(), 3, seed=0)
