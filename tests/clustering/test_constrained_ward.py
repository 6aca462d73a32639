from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from tests.clustering.blobs import blobs

from justright.clustering.ward import constrained_ward


def as_loops(x, labels, n_clusters):
    """Clusters as sets of rows, the cost of the last merge in each, and the highest cost of all."""
    known = sorted(set(labels.tolist()) - {-1})
    clusters = [{i for i, label in enumerate(labels) if label == k} for k in known]
    clusters += [{i} for i, label in enumerate(labels) if label == -1]
    class_of = [*known] + [None] * (len(clusters) - len(known))
    last, highest = [0.0] * len(clusters), 0.0

    def cost(a, b):
        apart = x[sorted(clusters[a])].mean(axis=0) - x[sorted(clusters[b])].mean(axis=0)
        return len(clusters[a]) * len(clusters[b]) / (len(clusters[a]) + len(clusters[b])) * float(apart @ apart)

    while len(clusters) > n_clusters:
        pairs = combinations(range(len(clusters)), 2)
        allowed = [(cost(a, b), a, b) for a, b in pairs if class_of[a] is None or class_of[b] is None]
        if not allowed:
            break
        price, a, b = min(allowed)
        clusters[a] |= clusters.pop(b)
        merged = class_of.pop(b)
        class_of[a] = class_of[a] if class_of[a] is not None else merged
        last.pop(b)
        last[a], highest = price, max(highest, price)
    return clusters, last, highest


def small_blobs(n_images=60, **options):
    """Blobs whose labeled classes are numbered without gaps."""
    x, y, labels = blobs(n_images=n_images, **options)
    return x, y, np.unique(labels, return_inverse=True)[1] - 1


def as_sets(labels):
    return {frozenset(np.flatnonzero(labels == each).tolist()) for each in np.unique(labels)}


@pytest.mark.parametrize(("seed", "n_clusters"), [(0, 8), (1, 5), (2, 12)])
def test_agrees_with_loops(seed, n_clusters):
    x, _, labels = small_blobs(seed=seed)
    found, (clusters, last, highest) = constrained_ward(x, labels, n_clusters), as_loops(x, labels, n_clusters)
    assert as_sets(found.labels) == {frozenset(each) for each in clusters}
    for rows, price in zip(clusters, last, strict=True):
        np.testing.assert_allclose(found.inner[found.labels[min(rows)]], price / highest, atol=1e-9)


def test_without_labels_it_is_wards_clustering():
    x, _, _ = blobs(n_images=90)
    found = constrained_ward(x, np.full(90, -1), 7)
    assert as_sets(found.labels) == as_sets(fcluster(linkage(x, "ward"), 7, "maxclust"))


def test_labeled_rows_keep_their_class_and_classes_never_merge():
    x, _, labels = blobs(noise=3.0)
    found = constrained_ward(x, labels, 4)
    is_labeled = labels >= 0
    np.testing.assert_array_equal(found.labels[is_labeled], labels[is_labeled])
    assert found.labels.max() == 3


def test_other_clusters_come_after_the_classes_the_largest_first():
    x, _, labels = blobs()
    found = constrained_ward(x, labels, 8)
    sizes = np.bincount(found.labels)[4:]
    assert (np.diff(sizes) <= 0).all()


def test_classes_alone_cannot_be_merged():
    x, y, _ = blobs(n_images=40)
    found = constrained_ward(x, y, 3)
    assert found.labels.max() == y.max()


def test_fewer_rows_than_clusters_are_a_cluster_each():
    x = np.eye(3)
    np.testing.assert_array_equal(np.sort(constrained_ward(x, np.full(3, -1), 9).labels), [0, 1, 2])
