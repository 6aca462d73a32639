from __future__ import annotations

import math

import numpy as np
import pytest

from justright.errors import DegenerateError
from justright.selection import label_effect, transfer_flow


def transfer_flow_as_loops(features, clusters):
    """The definition over ordered pairs of clusters and, within, over pairs of images."""
    x, y, n = features.tolist(), clusters.tolist(), len(clusters)

    def square(a, b):
        return sum((p - q) ** 2 for p, q in zip(a, b, strict=True))

    total = 0.0
    for c in sorted(set(y)):
        for d in sorted(set(y) - {c}):
            first, second = [x[i] for i in range(n) if y[i] == c], [x[i] for i in range(n) if y[i] == d]
            both = first + second
            width = sum(square(a, b) for a in both for b in both) / (len(both) ** 2 - len(both))
            mmd = 0.0
            for m in (-2, -1, 0, 1, 2):

                def mean(us, vs, scale=width * 2.0**m):
                    return sum(math.exp(-square(u, v) / scale) for u in us for v in vs) / (len(us) * len(vs))

                mmd += mean(first, first) + mean(second, second) - 2 * mean(first, second)
            total += len(first) * len(second) / (n * (n - 1)) * mmd
    return total


def blobs(gap, seed=0):
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(3), [7, 9, 12])
    return gap * np.eye(3, 4)[clusters] + 5.0 + rng.normal(size=(28, 4)), clusters


def test_agrees_with_the_definition_written_as_loops():
    features, clusters = blobs(2.0)
    assert transfer_flow(features, clusters) == pytest.approx(transfer_flow_as_loops(features, clusters), rel=1e-9)


def test_classes_farther_apart_flow_more():
    flows = [transfer_flow(*blobs(gap)) for gap in (0.0, 2.0, 6.0)]
    assert flows == sorted(flows)


def test_scale_and_place_of_features_do_not_matter():
    features, clusters = blobs(2.0)
    assert transfer_flow(100 * features + 3, clusters) == pytest.approx(transfer_flow(features, clusters), rel=1e-6)


def test_a_sample_of_each_cluster_comes_close():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(3), 200)
    features = 4 * np.eye(3)[clusters] + 5.0 + rng.normal(size=(600, 3))
    whole = transfer_flow(features, clusters, max_images=None)
    assert transfer_flow(features, clusters, max_images=60) == pytest.approx(whole, rel=0.1)
    assert transfer_flow(features, clusters, seed=1) == transfer_flow(features, clusters, seed=1)


def test_one_cluster_has_nothing_to_be_told_apart_from():
    with pytest.raises(DegenerateError, match="1 cluster"):
        transfer_flow(np.ones((3, 2)), np.zeros(3, dtype=int))


def pool_and_target(informative):
    """Target blobs differ along two axes; the pool's classes differ along these or along two others."""
    rng = np.random.default_rng(0)
    corners = 3.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    labels, clusters = np.repeat(np.arange(4), 25), np.repeat(np.arange(4), 25)
    noise = np.array([1.0, 1.0, 3.0, 3.0])
    pool, target = 20 + noise * rng.normal(size=(100, 4)), 20 + noise * rng.normal(size=(100, 4))
    target[:, :2] += corners[clusters]
    pool[:, slice(0, 2) if informative else slice(2, 4)] += corners[labels]
    return pool, labels, target


def test_labels_that_point_along_the_target_help_and_others_help_less():
    helping = label_effect(*pool_and_target(informative=True), n_clusters=4)
    hindering = label_effect(*pool_and_target(informative=False), n_clusters=4)
    assert helping.without_labels == pytest.approx(hindering.without_labels)
    assert helping.gain > 0
    assert helping.with_labels > hindering.with_labels


def test_classes_that_weigh_nothing_have_no_effect():
    pool, labels, target = pool_and_target(informative=True)
    weight = (labels < 3).astype(float)
    kept = labels < 3
    assert label_effect(pool, labels, target, weight, n_clusters=4).with_labels == pytest.approx(
        label_effect(pool[kept], labels[kept], target, n_clusters=4).with_labels
    )
    with pytest.raises(DegenerateError, match="1 class of positive weight"):
        label_effect(pool, labels, target, (labels == 0).astype(float), n_clusters=4)
