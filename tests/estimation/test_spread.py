from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage

from justright.estimation.spread import SpreadCounter, WardTree, k_of_spread, way_to_neighbors
from justright.utils.errors import DataError, DegenerateError


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


def test_spread_of_neighbors_agrees_with_loops():
    x = 2 * np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    assert way_to_neighbors(x, of_all=7.0) == pytest.approx(np.log(7.0 / (4 * (1 + 1 + 4) / 3 / 2)))


def test_nearest_spread_wins_unless_a_step_is_near():
    falling = 100 * 0.95 ** np.arange(60)
    assert k_of_spread(falling, falling[20] * 1.01) == 21
    plain = np.concatenate([[9.0, 6.0, 3.0, 1.0], 0.99 ** np.arange(1, 30)])
    assert k_of_spread(plain, 1.04) == 4
    assert k_of_spread(plain, 0.93) == 4
    assert k_of_spread(plain, 0.8) > 20


def blobs(n_classes=20, per_class=20, n_labeled=10, noise=0.3, dim=24, seed=0):
    """Classes around random directions; half of the images of some are labeled."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), per_class)
    x = rng.normal(size=(n_classes, dim))[y] + noise * rng.normal(size=(len(y), dim))
    return x, y, np.where((y < n_labeled) & (np.arange(len(y)) % 2 == 0), y, -1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [0.3, 0.6])
def test_finds_the_number_of_classes(noise, seed):
    x, _, labels = blobs(noise=noise, seed=seed)
    assert abs(SpreadCounter().fit(x, labels).n_categories_ - 20) <= 1


def test_counts_a_target_alone_by_a_pool_of_other_kinds():
    x, y, _ = blobs(n_classes=45, noise=0.4)
    is_target = y < 15
    counter = SpreadCounter().fit(x[is_target], None, pool=(x[~is_target], y[~is_target]))
    assert abs(counter.n_categories_ - 15) <= 2
    low, high = counter.interval()
    assert low <= 15 <= high


def test_scale_of_the_target_hardly_changes_k():
    """Everything in the target is twice as large: that is its scale and not more categories."""
    x, y, _ = blobs(n_classes=45, noise=0.4)
    is_target = y < 15
    twice = SpreadCounter(normalize=False).fit(2 * x[is_target], None, pool=(x[~is_target], y[~is_target]))
    assert abs(twice.n_categories_ - 15) <= 3


def test_estimate_is_at_least_the_labeled_classes():
    x, y, _ = blobs(noise=3.0)
    counter = SpreadCounter().fit(x, np.where(y < 18, y, -1))
    assert counter.n_categories_ >= 18
    low, high = counter.interval(n_resamples=3)
    assert low <= counter.n_categories_ <= high


def test_large_inputs_are_sampled():
    x, _, labels = blobs(per_class=60)
    assert abs(SpreadCounter(max_images=400).fit(x, labels).n_categories_ - 20) <= 2


def test_same_seed_same_result_and_torch_agrees():
    x, _, labels = blobs()
    one, other = (SpreadCounter(max_images=300, seed=3).fit(x, labels) for _ in range(2))
    np.testing.assert_array_equal(one.curve_, other.curve_)
    assert one.interval() == other.interval()
    tensors = SpreadCounter(max_images=300, seed=3).fit(torch.from_numpy(x), torch.from_numpy(labels))
    np.testing.assert_allclose(tensors.curve_, one.curve_)


@pytest.mark.parametrize("noise", [0.2, 0.6, 1.0])
def test_interval_without_labels_is_wide(noise):
    x, y, _ = blobs(noise=noise)
    counter = SpreadCounter().fit(x, None)
    low, high = counter.interval()
    assert low <= len(np.unique(y)) <= high
    assert low <= counter.n_categories_ <= high
    assert high >= 2 * low
    narrow = counter.interval(0.5)
    assert low <= narrow[0] <= counter.n_categories_ <= narrow[1] <= high
    with pytest.raises(DataError, match=r"an interval of level 2\.0"):
        counter.interval(2.0)


def test_uninformative_input_is_rejected():
    x, y, labels = blobs()
    with pytest.raises(DegenerateError, match="20 labeled classes, 20 images"):
        SpreadCounter().fit(x, np.where(np.arange(len(y)) % 20 == 0, y, -1))
    with pytest.raises(DegenerateError, match="All features are the same"):
        SpreadCounter().fit(np.ones((30, 4)), np.arange(30) % 3 - 1)
    with pytest.raises(DegenerateError, match="and a pool"):
        SpreadCounter().fit(x, labels, pool=(x, y))
