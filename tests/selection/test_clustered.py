from __future__ import annotations

import numpy as np
import pytest

from justright.selection import BinsSelector, ClassWeights, TargetFeatures, clustered
from justright.selection.clustered import ClusteredSelector, _assign, cluster_target
from justright.utils.errors import DataError, DegenerateError, JustrightError


class Farthest(ClusteredSelector):
    """Keeps the class farthest from the largest cluster."""

    def _decide(self, classes, clusters):
        largest = clusters.centroids()[self._mass(clusters).argmax()]
        away = np.linalg.norm(classes.centroids() - largest, axis=1)
        kept = (away == away.max()).astype(float)
        return ClassWeights(classes.classes, kept, ["farthest"] * len(kept), {"distance": away})


POOL, LABELS = np.array([[1.0, 1.0], [9.0, 1.0], [1.0, 5.0]]), np.array([0, 1, 2])
TARGET = np.array([[1.0, 1.1]] * 5 + [[9.0, 1.1]] * 2)


def test_decide_gets_centroids_of_classes_and_clusters():
    selector = Farthest(n_clusters=2).fit(POOL, LABELS, TARGET)
    assert selector.selected_classes_.tolist() == [1]
    assert sorted(np.bincount(selector.target_clusters_)) == [2, 5]


def test_given_clusters_replace_kmeans():
    selector = Farthest(n_clusters=2).fit(POOL, LABELS, TARGET, np.array([0, 1, 1, 1, 1, 0, 0]))
    assert selector.target_clusters_.tolist() == [0, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(("mass", "expected"), [("images", [5.0, 2.0]), ("uniform", [1.0, 1.0])])
def test_mass_is_the_number_of_images_or_uniform(mass, expected):
    selector = BinsSelector(mass=mass, n_clusters=2)
    _, sums = cluster_target(TargetFeatures([TARGET]), 2, 2, seed=0)
    assert sorted(selector._mass(sums), reverse=True) == expected


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


def test_kmeans_finds_separated_blobs(plane):
    clusters, sums = cluster_target(TargetFeatures([plane.target]), 2, 12, seed=0)
    assert same_partition(clusters, plane.clusters)
    assert sums.counts.tolist() == [30] * 12


def test_clusters_do_not_depend_on_shards(plane, monkeypatch):
    monkeypatch.setattr(clustered, "MAX_FIT_IMAGES", 100)
    whole, sums = cluster_target(TargetFeatures([plane.target]), 2, 12, seed=0)
    shards, shard_sums = cluster_target(TargetFeatures([plane.target[:130], plane.target[130:]]), 2, 12, seed=0)
    assert np.array_equal(whole, shards)
    assert sums.sums == pytest.approx(shard_sums.sums)
    assert len(whole) == 360


def test_given_clusters_are_not_changed(plane):
    target = TargetFeatures([plane.target[:100], plane.target[100:]], clusters=plane.clusters + 7)
    clusters, sums = cluster_target(target, 2, None, seed=0)
    assert np.array_equal(clusters, plane.clusters + 7)
    assert sums.classes.tolist() == list(range(7, 19))


def test_each_image_joins_the_nearest_center():
    rng = np.random.default_rng(0)
    features, centers = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
    expected = np.linalg.norm(features[:, None] - centers, axis=2).argmin(axis=1)
    assert np.array_equal(_assign(centers, (0, features), normalize=False)[0], expected)


def test_more_clusters_than_images_are_rejected(plane):
    with pytest.raises(DegenerateError, match="5 target images for 12 clusters") as error:
        cluster_target(TargetFeatures([plane.target[:5]]), 2, 12, seed=0)
    assert "at most 5" in str(error.value)


def test_more_clusters_than_distinct_images_raise():
    with pytest.raises(DegenerateError, match="only 2 distinct features for 3 clusters"):
        cluster_target(TargetFeatures([np.repeat(np.eye(2), 2, axis=0)]), 2, 3, seed=0)


def test_n_clusters_or_clusters_are_required(plane):
    with pytest.raises(JustrightError, match="neither n_clusters nor target_clusters"):
        cluster_target(TargetFeatures([plane.target]), 2, None, seed=0)


@pytest.mark.parametrize("n_given", [359, 361])
def test_given_clusters_must_be_one_per_image(plane, n_given):
    with pytest.raises(DataError, match=f"{n_given} target_clusters for 360 target images"):
        cluster_target(TargetFeatures([plane.target], clusters=np.zeros(n_given, dtype=int)), 2, None, seed=0)
