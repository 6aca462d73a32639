from __future__ import annotations

import math

import numpy as np
import pytest
from tests.clustering.blobs import blobs

from justright.clustering import SemiSupKMeans
from justright.clustering.hierarchy import hierarchy, level_sizes


@pytest.mark.parametrize(
    ("known", "new", "sums"),
    [
        (100, 100, [200, 100, 50, 24, 12, 6, 2]),  # CUB
        (98, 98, [196, 98, 48, 24, 12, 6, 2]),  # Cars
        (80, 20, [100, 50, 25, 12, 6, 3, 2]),  # CIFAR-100
        (5, 5, [10, 4, 2]),
        (3, 0, [3, 1]),
        (1, 4, [5]),
        (0, 9, [9, 4, 2]),
    ],
)
def test_levels_have_half_the_clusters_of_the_one_before(known, new, sums):
    assert [sum(size) for size in level_sizes(known, new)] == sums


def test_a_hierarchy_is_semi_supervised_k_means_at_every_level():
    """By hand: the finest level, then groups of its known centroids, and the others anew beside them."""
    x, _, labels = blobs(noise=0.6)
    found = hierarchy(x, labels, 8, seed=3)
    finest = SemiSupKMeans(8, n_init=1, seed=3).fit(x, labels)
    np.testing.assert_array_equal(found.labels[0], finest.labels_)
    for level, (known, new) in enumerate([(2, 2), (1, 1)], start=1):
        group = SemiSupKMeans(known, seed=3, normalize=False).fit(finest.centroids_[:4]).labels_
        given = np.array([group[k] if k < 4 else -1 for k in finest.labels_])
        expected = SemiSupKMeans(known + new, n_init=1, seed=3).fit(x, given).labels_
        np.testing.assert_array_equal(found.labels[level], expected)


def test_labels_follow_the_order_of_images():
    x, _, labels = blobs(noise=0.05)
    order = np.random.default_rng(1).permutation(len(x))
    here, there = hierarchy(x, labels, 8, seed=0), hierarchy(x[order], labels[order], 8, seed=0)
    for one, other in zip(here.labels, there.labels, strict=True):
        pairs = set(zip(one[order].tolist(), other.tolist(), strict=True))
        assert len(pairs) == len(set(one.tolist()))  # the same clusters, under other numbers perhaps


def test_known_clusters_stay_together_at_all_levels():
    x, _, labels = blobs(noise=0.6)
    found = hierarchy(x, labels, 8, seed=0).labels
    np.testing.assert_array_equal(found[0][labels >= 0], labels[labels >= 0])
    for level in found[1:]:
        for k in range(4):
            assert len(set(level[found[0] == k].tolist())) == 1


def test_the_official_order_puts_known_images_first():
    x, _, labels = blobs(noise=0.6)
    restored = hierarchy(x, labels, 8, seed=0)
    official = hierarchy(x, labels, 8, seed=0, order="official")
    np.testing.assert_array_equal(official.labels[0], restored.labels[0])
    is_known = restored.labels[0] < 4
    order = [*np.flatnonzero(is_known), *np.flatnonzero(~is_known)]
    for one, other in zip(official.labels[1:], restored.labels[1:], strict=True):
        np.testing.assert_array_equal(one, other[order])
    assert (official.labels[1] != restored.labels[1]).any()


def test_reach_is_the_distance_to_the_nearest_other_centroid():
    x, _, labels = blobs()
    found = hierarchy(x, labels, 8, seed=0)
    centroids = SemiSupKMeans(8, n_init=1, seed=0).fit(x, labels).centroids_
    for image in range(0, 240, 17):
        own = found.labels[0][image]
        nearest = min(math.dist(centroids[own], centroids[k]) for k in range(8) if k != own)
        assert found.reach[0][image] == pytest.approx(nearest)
    assert np.isinf(hierarchy(x, np.full(240, -1), 1, seed=0).reach).all()


def test_without_labels_it_is_a_hierarchy_of_k_means():
    x, _, _ = blobs()
    found = hierarchy(x, np.full(240, -1), 8, seed=0)
    assert [len(set(level.tolist())) for level in found.labels] == [8, 4, 2]


def test_equal_seeds_give_equal_hierarchies():
    x, _, labels = blobs(noise=2.0)
    found = [hierarchy(x, labels, 8, seed=seed).labels.tolist() for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
