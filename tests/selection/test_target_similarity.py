from __future__ import annotations

import numpy as np
import pytest

from justright.geometry import cosine_similarity
from justright.selection import TargetFeatures
from justright.selection.target_similarity import REDUCTION, reduce_cosines, similarity_to_target

REDUCTIONS = ["min", "median", "max", 0.0, 0.1, 1.0]


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 4)), rng.normal(size=(200, 4)).astype(np.float32)


def as_loops(centroids, target, reduction):
    """The cosine to the farthest, the nearest or the image in the middle, one by one."""
    found = []
    for c in centroids.tolist():
        cosines = sorted(float(np.dot(c, x) / np.linalg.norm(c) / np.linalg.norm(x)) for x in target.astype(float))
        middle = (cosines[99] + cosines[100]) / 2
        found.append({"min": cosines[0], "median": middle, "max": cosines[-1]}[reduction])
    return found


@pytest.mark.parametrize("reduction", ["min", "median", "max"])
def test_agrees_with_loops(points, reduction):
    found = similarity_to_target(points[0], TargetFeatures([points[1]]), reduction)
    assert found == pytest.approx(as_loops(*points, reduction), abs=1e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_shards_and_ready_cosines_give_what_one_array_gives(points, reduction):
    centroids, target = points
    whole = similarity_to_target(centroids, TargetFeatures([target]), reduction)
    shards = TargetFeatures([target[:50], target[50:51], target[:0], target[51:]])
    assert similarity_to_target(centroids, shards, reduction) == pytest.approx(whole, abs=1e-7)
    assert reduce_cosines(cosine_similarity(centroids, target), reduction) == pytest.approx(whole, abs=1e-7)


def test_a_reduction_is_a_word_or_a_quantile():
    assert all(REDUCTION.allows(each) for each in REDUCTIONS)
    assert not REDUCTION.allows(1.5)
