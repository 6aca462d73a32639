from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.manifold import TSNE

from justright.geometry import tsne
from justright.geometry.tsne import neighbor_map, neighbor_shares


def gradient_as_loops(p, y):
    """4 sum_j (p_ij - q_ij) w_ij (y_i - y_j)."""
    n = len(y)
    w = [[0.0 if i == j else 1 / (1 + sum((y[i] - y[j]) ** 2)) for j in range(n)] for i in range(n)]
    total = sum(map(sum, w))
    return np.array(
        [sum(4 * (p[i, j] - w[i][j] / total) * w[i][j] * (y[i] - y[j]) for j in range(n)) for i in range(n)]
    )


def divergence(x, perplexity, y):
    """sum_ij p_ij log(p_ij / q_ij): what t-SNE lowers."""
    p = neighbor_shares(x, perplexity)
    w = 1 / (1 + np.square(y[:, None] - y).sum(axis=2)) * (1 - np.eye(len(y)))
    return float(np.sum(p * np.log(np.maximum(p, 1e-12) / np.maximum(w / w.sum(), 1e-12))))


@pytest.fixture
def groups():
    """Six groups of twenty points in eight dimensions, and where to start."""
    rng = np.random.default_rng(0)
    x = 2 * np.eye(8)[np.repeat(np.arange(6), 20)] + rng.normal(0, 0.4, (120, 8))
    return x, 1e-4 * x[:, :2]


def test_the_first_steps_agree_with_the_gradient_written_as_loops(groups, monkeypatch):
    x = groups[0][::10]
    start = np.random.default_rng(1).normal(size=(12, 2))
    p = neighbor_shares(x, 3.0)
    monkeypatch.setattr(tsne, "BLOCK", 50)  # four rows at a time
    monkeypatch.setattr(tsne, "N_EARLY", 0)
    first = neighbor_map(x, start, 3.0, 1)
    # velocity and gradient do not disagree at first, so the gain falls to 0.8; the rate is at least 50
    assert first == pytest.approx(start - 50 * 0.8 * gradient_as_loops(p, start), rel=1e-4, abs=1e-5)
    monkeypatch.setattr(tsne, "N_EARLY", 1)
    early = neighbor_map(x, start, 3.0, 1)
    pulled = gradient_as_loops(12 * p, start)  # only the attraction is exaggerated
    assert early == pytest.approx(start - 50 * 0.8 * pulled, rel=1e-4, abs=1e-4)


def test_every_point_has_as_many_neighbors_as_asked(groups):
    x, _ = groups
    p = neighbor_shares(x, 10.0)
    assert p.sum() == pytest.approx(1)
    assert np.array_equal(p, p.T)
    one = np.array([np.sum((x - x[0]) ** 2, axis=1), np.sum((x - x[7]) ** 2, axis=1)])
    assert (p[0, one[0].argsort()[1:4]] > p[0, one[0].argsort()[-4:]].max()).all(), "near ones have the largest shares"
    distance = np.sort(np.square(x[:, None] - x).sum(axis=2), axis=1)[:, 1:31]
    share = np.exp(-tsne._sharpness(distance, 10.0)[:, None] * distance)
    share /= share.sum(axis=1, keepdims=True)
    entropy = -(share * np.log(share)).sum(axis=1)
    assert entropy == pytest.approx(np.full(120, math.log(10.0)), abs=1e-6)


def test_the_map_is_as_good_as_that_of_scikit_learn(groups):
    x, start = groups
    ours = neighbor_map(x, start, 15.0, 500)
    theirs = TSNE(perplexity=15.0, init=start, max_iter=500).fit_transform(x)
    assert divergence(x, 15.0, ours) < 1.05 * divergence(x, 15.0, theirs)


def test_equal_points_and_very_few_are_no_error():
    assert np.isfinite(neighbor_map(np.ones((9, 3)), np.zeros((9, 2)), 2.0, 300)).all()
    assert np.isfinite(neighbor_map(np.eye(5), np.eye(5)[:, :2], 4 / 3, 300)).all()
