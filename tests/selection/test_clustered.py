from __future__ import annotations

import numpy as np
import pytest

from justright.selection import BinsSelector, ClassWeights, PoolFeatures, TargetFeatures
from justright.selection.clustered import ClusteredSelector


class Farthest(ClusteredSelector):
    """Keeps the class farthest from the largest cluster."""

    n_clusters, metric, mass, seed = 2, "euclidean", "images", 0

    def _decide(self, classes, clusters):
        largest = clusters.centroids()[self._mass(clusters).argmax()]
        away = np.linalg.norm(classes.centroids() - largest, axis=1)
        kept = (away == away.max()).astype(float)
        return ClassWeights(classes.classes, kept, ["told"] * len(kept), {"distance": away})


POOL, LABELS = np.array([[1.0, 1.0], [9.0, 1.0], [1.0, 5.0]]), np.array([0, 1, 2])
TARGET = np.array([[1.0, 1.1]] * 5 + [[9.0, 1.1]] * 2)


def test_a_selector_decides_from_centroids_of_classes_and_clusters():
    selector = Farthest().fit(POOL, LABELS, TARGET)
    assert selector.selected_classes_.tolist() == [1]
    assert sorted(np.bincount(selector.target_clusters_)) == [2, 5]


def test_clusters_that_are_given_replace_k_means():
    selector = Farthest().fit(POOL, LABELS, TARGET, np.array([0, 1, 1, 1, 1, 0, 0]))
    assert selector.target_clusters_.tolist() == [0, 1, 1, 1, 1, 0, 0]


def test_a_resample_counts_only_its_rows():
    weigh = Farthest().resampler(PoolFeatures([(POOL, LABELS)]), TargetFeatures([TARGET]))
    assert weigh(np.arange(7), 0).tolist() == [0.0, 1.0, 0.0]
    assert weigh(np.array([0, 5, 6, 6]), 0).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("mass", "expected"), [("images", [5.0, 2.0]), ("uniform", [1.0, 1.0])])
def test_a_cluster_counts_as_its_images_or_as_one(mass, expected):
    selector = BinsSelector(mass=mass, n_clusters=2)
    _, sums = selector._cluster(TargetFeatures([TARGET]), PoolFeatures([(POOL, LABELS)]).sums())
    assert sorted(selector._mass(sums), reverse=True) == expected
