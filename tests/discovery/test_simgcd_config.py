from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from justright.discovery.mugcd import MuGCDConfig
from justright.discovery.simgcd import SimGCDConfig, are_uneven


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([30, 30, 30], False),
        ([1, 1, 1, 1], False),
        ([7, 9, 12, 10, 14, 8], False),
        ([100, 50, 25, 12, 6, 3], True),
        ([10, 1, 1, 1, 1], True),
        ([5], False),
        ([], False),
        ([0, 0], False),
    ],
)
def test_sizes_beyond_chance_are_uneven(sizes, expected):
    assert are_uneven(np.array(sizes, dtype=np.int64)) is expected


@pytest.mark.parametrize("mean", [1, 2, 5, 20])
def test_chance_alone_does_not_make_sizes_uneven(mean):
    found = [are_uneven(np.random.default_rng(seed).poisson(mean, 200)) for seed in range(20)]
    assert not any(found)


def test_uneven_classes_lower_entropy_scale_unless_set():
    uneven, even = np.array([64, 32, 16, 8, 4]), np.full(5, 20)
    small = SimGCDConfig().small()
    assert small.for_classes(even) == small
    assert small.for_classes(uneven) == replace(small, entropy_scale=1.0)
    assert SimGCDConfig().for_classes(uneven) == SimGCDConfig(), "not published"
    assert small.with_settings({"entropy_scale": 3.0}).for_classes(uneven).entropy_scale == 3.0
    both = {"entropy_scale": 3.0, "entropy_scale_uneven": 0.5}
    assert small.with_settings(both).for_classes(uneven).entropy_scale == 0.5
    assert MuGCDConfig().small().for_classes(uneven).entropy_scale == 1.0
