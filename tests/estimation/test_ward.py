import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from justright.estimation.ward import WardTree, k_of_spread, neighbor_spread


def spread_as_written(x, n_clusters, measured):
    """Cut the tree at K clusters and measure image by image."""
    cluster = fcluster(linkage(x, "ward"), n_clusters, "maxclust")
    total = 0.0
    for i in np.flatnonzero(measured):
        total += ((x[i] - x[cluster == cluster[i]].mean(axis=0)) ** 2).sum()
    return total / measured.sum() * len(x) / (len(x) - n_clusters)


def test_agrees_with_cutting_the_tree_at_each_k():
    x = np.random.default_rng(0).normal(size=(40, 5))
    for measured in (np.ones(40, dtype=bool), np.arange(40) % 3 == 0):
        spread = WardTree(x).spread(measured)
        for k in (1, 2, 7, 39):
            assert spread[k - 1] == pytest.approx(spread_as_written(x, k, measured))
        assert spread[-1] == 0


def test_spreads_of_small_and_large_samples_compare():
    """Around their own mean, five images lie closer than fifty; the factor makes up for it."""
    rng = np.random.default_rng(0)
    few = np.mean([WardTree(rng.normal(size=(5, 3))).spread()[0] for _ in range(300)])
    assert few == pytest.approx(WardTree(rng.normal(size=(2000, 3))).spread()[0], rel=0.1)


def test_duplicates_have_no_spread_and_one_image_is_a_tree():
    x = np.repeat(np.random.default_rng(0).normal(size=(6, 4)), 3, axis=0)
    spread = WardTree(x).spread()
    assert (spread[5:] == 0).all()
    assert k_of_spread(spread, 0.0) == 6
    assert WardTree(x[:1]).spread().tolist() == [0]


def test_neighbor_spread_is_half_the_squared_distance_to_the_nearest():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    assert neighbor_spread(x) == pytest.approx((1 + 1 + 4) / 3 / 2)


def test_the_nearest_spread_is_taken_and_a_step_before_a_plain():
    falling = 100 * 0.95 ** np.arange(60)
    assert k_of_spread(falling, falling[20] * 1.01) == 21
    plain = np.concatenate([[9.0, 6.0, 3.0, 1.0], 0.99 ** np.arange(1, 30)])
    assert k_of_spread(plain, 1.04) == 4
    assert k_of_spread(plain, 0.93) == 4
    assert k_of_spread(plain, 0.8) > 20
