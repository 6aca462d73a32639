from __future__ import annotations

import math

import numpy as np
import pytest

from justright.discovery.evidence import NAMES, CategoryShapes, evidence, largest_overlap

RNG = np.random.default_rng(0)
N, N_CATEGORIES = 80, 6
CATEGORY = RNG.integers(N_CATEGORIES, size=N)
OTHER = np.where(RNG.random(N) < 0.6, CATEGORY, RNG.integers(7, size=N))
ALIKE, VOTE = RNG.random(N), RNG.random(N)


def overlap_as_loops(a):
    left = {i for i in range(N) if CATEGORY[i] == a}
    clusters = [{i for i in range(N) if OTHER[i] == b} for b in range(7)]
    return max(len(left & right) / len(left | right) for right in clusters)


def test_agrees_with_loops():
    repeated = largest_overlap(CATEGORY, OTHER, N_CATEGORIES)
    clusters = CategoryShapes(np.bincount(CATEGORY, minlength=N_CATEGORIES), repeated, 0.3, -0.4)
    found = evidence(CATEGORY, ALIKE, VOTE, clusters)
    assert found.shape == (N, len(NAMES))
    for image in range(N):
        a = CATEGORY[image]
        large = max(0.0, math.log((clusters.size[a] + 1) / (N / N_CATEGORIES + 1)))
        row = [ALIKE[image], VOTE[image], overlap_as_loops(a), large, 0.3, -0.4, 0.0]
        np.testing.assert_allclose(found[image], row, rtol=1e-5, atol=1e-6)


def test_too_few_known_classes_are_a_column():
    columns = CategoryShapes(np.ones(2, dtype=np.int64), np.ones(2), hidden=None).columns(np.array([0, 1, 1]))
    np.testing.assert_array_equal(columns[-2:], [[0, 0, 0], [1, 1, 1]])


def test_renumbered_clusters_overlap_fully():
    other = (CATEGORY + 3) % N_CATEGORIES
    assert largest_overlap(CATEGORY, other, N_CATEGORIES) == pytest.approx(np.ones(N_CATEGORIES))


def test_category_without_images_overlaps_with_nothing():
    assert not largest_overlap(CATEGORY, OTHER, N_CATEGORIES + 2)[N_CATEGORIES:].any()
