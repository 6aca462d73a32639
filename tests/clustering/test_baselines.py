from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from justright.clustering import baselines
from justright.clustering.baselines import BASELINES, FrozenFeatures, linked, pair_distances, simple_clusters

N_CLASSES, N_KNOWN = 8, 3
WITHOUT_LABELS = [name for name in BASELINES if name == "k-means" or name.startswith(("Ward", "average"))]
WITH_LABELS = [name for name in BASELINES if name not in WITHOUT_LABELS]


def drawn(noise=0.15, n=160, seed=0, **changes):
    """Features of a target of eight classes, the first three of which are labeled; the classes of its images."""
    rng = np.random.default_rng(seed)
    centers, y = rng.normal(size=(N_CLASSES, 12)), np.arange(n) % N_CLASSES
    labels = np.arange(30) % N_KNOWN

    def near(classes):
        return (1 + centers[classes] + noise * rng.normal(size=(len(classes), 12))).astype(np.float32)

    given = {"target": near(y), "labeled": near(labels), "labels": labels, "n_known": N_KNOWN, "n_clusters": N_CLASSES}
    return FrozenFeatures(**given | changes), y


def distances_as_loops(x, method):
    found = []
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if method == "ward":
                found.append(np.sqrt(sum((a - b) ** 2 for a, b in zip(x[i], x[j], strict=True))))
            else:
                found.append(1 - x[i] @ x[j] / np.sqrt((x[i] @ x[i]) * (x[j] @ x[j])))
    return np.array(found)


@pytest.mark.parametrize(("method", "metric"), [("ward", "euclidean"), ("average", "cosine")])
def test_distances_agree_with_loops_and_with_scipy(method, metric, monkeypatch):
    x = drawn()[0].target[:23].astype(np.float64)
    np.testing.assert_allclose(pair_distances(x, method), distances_as_loops(x, method), atol=1e-12)
    monkeypatch.setattr("justright.clustering.arrays._BLOCK_NUMBERS", 100)  # four rows
    np.testing.assert_allclose(pair_distances(x, method), pdist(x, metric), atol=1e-12)


@pytest.mark.parametrize(("method", "metric"), [("ward", "euclidean"), ("average", "cosine")])
def test_trees_are_those_of_scikit_learn(method, metric):
    x = drawn(noise=0.8)[0].target
    expected = AgglomerativeClustering(6, linkage=method, metric=metric).fit_predict(x)
    assert adjusted_rand_score(expected, linked(x, method, 6)) == 1


@pytest.mark.parametrize("name", BASELINES)
def test_every_method_finds_clear_categories(name):
    features, y = drawn()
    found = simple_clusters(features, name)
    assert adjusted_rand_score(y, found) > 0.9
    assert found.dtype == np.int64


@pytest.mark.parametrize("name", WITH_LABELS)
def test_with_labels_cluster_k_is_known_class_k(name):
    features, y = drawn()
    found = simple_clusters(features, name)
    assert np.mean(found[y < N_KNOWN] == y[y < N_KNOWN]) > 0.8
    assert (found[y >= N_KNOWN] >= N_KNOWN).mean() > 0.8
    assert found.max() < N_CLASSES


@pytest.mark.parametrize("name", WITHOUT_LABELS)
def test_methods_without_labels_have_new_clusters_only(name):
    features, _ = drawn(n_absent=2)
    found = simple_clusters(features, name)
    assert found.min() >= N_KNOWN
    assert len(set(found)) == N_CLASSES - 2
    other, _ = drawn(labels=np.zeros(30, dtype=np.int64), n_absent=2)
    assert (found == simple_clusters(other, name)).all()


def test_whitened_features_are_uncorrelated():
    features, y = drawn()
    target, labeled = (  # 12 directions in 13 dimensions
        np.hstack([each, each.sum(axis=1, keepdims=True)]) for each in (features.target, features.labeled)
    )
    white = FrozenFeatures(target, labeled, features.labels, N_KNOWN, N_CLASSES)
    assert white.whitened.shape[1] == 12
    np.testing.assert_allclose(np.cov(white.whitened.T, bias=True), np.eye(12), atol=1e-3)
    assert adjusted_rand_score(y, simple_clusters(white, "Ward, whitened")) > 0.9


def test_four_fifths_of_labeled_images_would_be_sure_enough(monkeypatch):
    features, _ = drawn(noise=1.0)
    by_share = {}
    for share in (1.0, 0.8, 0.0):
        monkeypatch.setattr(baselines, "SURE_SHARE", share)
        by_share[share] = (simple_clusters(features, "logistic regression and Ward") < N_KNOWN).mean()
    assert by_share[1.0] >= by_share[0.8] > by_share[0.0]


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize(
    "changes",
    [
        {"n_clusters": N_KNOWN},  # nothing is new
        {"n_clusters": 500},  # more than images
        {"labels": np.arange(30) % 2},  # a known class without a labeled image
        {"labels": np.zeros(30, dtype=np.int64)},
        {"labeled": np.zeros((0, 12), np.float32), "labels": np.zeros(0, np.int64), "n_known": 0},
        {"labeled": np.eye(12, dtype=np.float32)[:3], "labels": np.arange(3)},  # one image a class
        {"labels": np.arange(30) % 20, "n_known": 20, "n_clusters": 25},  # fewer than two images a class
        {"target": np.eye(12, dtype=np.float32)[:2]},
    ],
)
def test_odd_problems_have_an_answer(name, changes):
    features, _ = drawn(**changes)
    found = simple_clusters(features, name)
    assert found.shape == (len(features.target),)
    assert found.min() >= 0
    assert found.max() < features.n_known + features.n_clusters
