from __future__ import annotations

import numpy as np
import pytest

from justright.selection import TargetFeatures, target_clusters
from justright.selection.target_clusters import _assign, cluster_target
from justright.utils.errors import DataError, DegenerateError, JustrightError


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


def test_k_means_finds_well_separated_blobs(plane):
    clusters, sums = cluster_target(TargetFeatures([plane.target]), 2, 12, seed=0)
    assert same_partition(clusters, plane.clusters)
    assert sums.counts.tolist() == [30] * 12


def test_shards_change_nothing_even_where_only_a_sample_places_the_centers(plane, monkeypatch):
    monkeypatch.setattr(target_clusters, "MAX_FIT_IMAGES", 100)
    whole, sums = cluster_target(TargetFeatures([plane.target]), 2, 12, seed=0)
    shards, shard_sums = cluster_target(TargetFeatures([plane.target[:130], plane.target[130:]]), 2, 12, seed=0)
    assert np.array_equal(whole, shards)
    assert sums.sums == pytest.approx(shard_sums.sums)
    assert len(whole) == 360


def test_given_clusters_are_taken_as_they_are(plane):
    target = TargetFeatures([plane.target[:100], plane.target[100:]], clusters=plane.clusters + 7)
    clusters, sums = cluster_target(target, 2, None, seed=0)
    assert np.array_equal(clusters, plane.clusters + 7)
    assert sums.classes.tolist() == list(range(7, 19))


def test_each_image_joins_the_nearest_center():
    rng = np.random.default_rng(0)
    features, centers = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
    expected = np.linalg.norm(features[:, None] - centers, axis=2).argmin(axis=1)
    assert np.array_equal(_assign(centers, (0, features), normalize=False)[0], expected)


def test_more_clusters_than_images_is_an_error_with_the_most_that_works(plane):
    with pytest.raises(DegenerateError, match="5 target images for 12 clusters") as error:
        cluster_target(TargetFeatures([plane.target[:5]]), 2, 12, seed=0)
    assert "at most 5" in str(error.value)


def test_more_clusters_than_different_images_is_an_error():
    with pytest.raises(DegenerateError, match="2 different target images for 3 clusters"):
        cluster_target(TargetFeatures([np.repeat(np.eye(2), 2, axis=0)]), 2, 3, seed=0)


def test_k_is_needed_unless_clusters_are_given(plane):
    with pytest.raises(JustrightError, match="neither n_clusters nor target_clusters"):
        cluster_target(TargetFeatures([plane.target]), 2, None, seed=0)
    with pytest.raises(DegenerateError, match="n_clusters=1"):
        cluster_target(TargetFeatures([plane.target]), 2, 1, seed=0)


@pytest.mark.parametrize("n_given", [359, 361])
def test_given_clusters_must_be_one_per_image(plane, n_given):
    with pytest.raises(DataError, match=f"{n_given} target_clusters for 360 target images"):
        cluster_target(TargetFeatures([plane.target], clusters=np.zeros(n_given, dtype=int)), 2, None, seed=0)
