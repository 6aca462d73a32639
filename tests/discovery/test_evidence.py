from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from justright.discovery.evidence import MOST_OUTER, MOST_WIDTH, NAMES, CategoryShapes, Member, evidence

RNG = np.random.default_rng(0)
N, N_CATEGORIES = 80, 6
CATEGORY = RNG.integers(N_CATEGORIES, size=N)
OTHERS = [np.where(RNG.random(N) < 0.6, CATEGORY, RNG.integers(7, size=N)) for _ in range(4)]
ALIKE, VOTE = RNG.random(N), RNG.random(N)
CLUSTERS = CategoryShapes(
    RNG.random(6), np.exp(RNG.normal(size=6) * 2), np.bincount(CATEGORY, minlength=6), 2, 0.3, 0.6, -0.4
)


def of_member_as_loops(category, cluster, image):
    def overlap(a, b):
        left = {i for i in range(N) if category[i] == a}
        right = {i for i in range(N) if cluster[i] == b}
        return len(left & right) / len(left | right)

    a = category[image]
    every = {b: overlap(a, b) for b in range(7)}
    best = max(every, key=lambda b: (every[b], -b))
    return every[cluster[image]], every[best], float(best == cluster[image])


def test_agrees_with_loops():
    members = [OTHERS[:2], OTHERS[2:3], OTHERS[3:]]  # two trainings of the method
    given = [[(Member.of(CATEGORY, each, N_CATEGORIES, 7), each) for each in same] for same in members]
    found = evidence(CATEGORY, ALIKE, VOTE, given, CLUSTERS)
    assert found.shape == (N, len(NAMES))
    for image in range(N):
        a = CATEGORY[image]
        row = [ALIKE[image], VOTE[image]]
        for same in members:
            columns = [of_member_as_loops(CATEGORY, each, image) for each in same]
            row += [sum(each[column] for each in columns) / len(columns) for column in range(3)]
        outer = math.log(min(max(CLUSTERS.outer[a], 1 / MOST_OUTER), MOST_OUTER))
        large = max(0.0, math.log((CLUSTERS.size[a] + 1) / (N / N_CATEGORIES + 1)))
        row += [math.sqrt(CLUSTERS.inner[a]), outer, large, float(a >= 2), 0.3, 0.6, -0.4, 0.0]
        np.testing.assert_allclose(found[image], row, rtol=1e-5, atol=1e-6)


def test_renumbered_clusters_agree_fully():
    other = (CATEGORY + 3) % N_CATEGORIES
    overlap, repeated, agreeing = Member.of(CATEGORY, other, N_CATEGORIES, N_CATEGORIES).columns(CATEGORY, other)
    np.testing.assert_array_equal([overlap, repeated, agreeing], np.ones((3, N)))


def test_cluster_without_anchors_is_allowed():
    member = Member.of(CATEGORY, OTHERS[0], N_CATEGORIES + 2, 7)
    overlap, repeated, _ = member.columns(np.array([N_CATEGORIES + 1]), np.array([0]))
    assert overlap[0] == repeated[0] == 0


def test_k_width_is_capped():
    clusters = CategoryShapes(np.ones(2), np.ones(2), np.ones(2, dtype=np.int64), 1, k_width=3.0)
    width = clusters.columns(np.array([0, 1]))[NAMES.index("k_width") - NAMES.index("inner")]
    assert width == pytest.approx([MOST_WIDTH] * 2)


def test_untrained_features_count_once():
    given = [[(Member.of(CATEGORY, each, N_CATEGORIES, 7), each)] for each in OTHERS[:3]]
    trained = evidence(CATEGORY, ALIKE, VOTE, given, CLUSTERS)
    untrained = evidence(CATEGORY, ALIKE, VOTE, given, replace(CLUSTERS, is_trained=False))
    for place, name in enumerate(NAMES):
        if name.endswith(" tuned"):
            assert not untrained[:, place].any()
            assert trained[:, place].any()
        elif name == "untrained":
            assert (untrained[:, place] == 1).all()
            assert (trained[:, place] == 0).all()
        else:
            np.testing.assert_array_equal(untrained[:, place], trained[:, place])
