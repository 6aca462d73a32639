from __future__ import annotations

import numpy as np
from tests.discovery.tiny import data_of, learned

from justright.clustering import SemiSupKMeans
from justright.discovery.learner import features_of
from justright.features.bank import open_views
from justright.utils.types import UNLABELED


def frozen_features(split, backbone, bank):
    images = data_of(split).images
    views = open_views(backbone, images, bank, transform="plain", views=1, precision="float32")
    return features_of(backbone, views)


def test_kmeans_clusters_frozen_features(split, backbone, bank):
    method = learned("kmeans", split, backbone, bank, seed=3)
    labels = np.concatenate([split.labeled.labels, np.full(len(split.unlabeled), UNLABELED)])
    expected = SemiSupKMeans(5, n_init=2, seed=3).fit(frozen_features(split, backbone, bank), labels)
    assert method.labels_.tolist() == expected.labels_[len(split.labeled) :].tolist()
    np.testing.assert_array_equal(method.assigner_.vectors, expected.centroids_.astype(np.float32))
    assert [category.name for category in method.categories_] == ["0", "1", "2", "new-001", "new-002"]


def test_kmeans_with_given_features_opens_no_views(split, backbone, bank, monkeypatch):
    features, expected = frozen_features(split, backbone, bank), learned("kmeans", split, backbone, bank)
    monkeypatch.setattr("justright.discovery.base.open_views", None)
    n = len(split.labeled)
    method = learned("kmeans", split, backbone, bank, fit={"features": (features[:n], features[n:])})
    np.testing.assert_array_equal(method.labels_, expected.labels_)
    np.testing.assert_array_equal(method.features_, features[n:])


def test_without_labels_only_the_target_is_clustered(split, backbone, bank):
    method = learned("kmeans", split, backbone, bank, seed=3, use_labels=False, n=4)
    target = frozen_features(split, backbone, bank)[len(split.labeled) :]
    expected = SemiSupKMeans(4, n_init=2, seed=3).fit(target)
    assert method.labels_.tolist() == expected.labels_.tolist()
    assert {category.kind for category in method.categories_} == {"discovered"}
    assert method.known_labels_ == ()
    assert method.calibrated_on_.startswith("nothing")


def test_plain_kmeans_allows_fewer_clusters_than_classes(split, backbone, bank):
    assert set(learned("kmeans", split, backbone, bank, use_labels=False, n=2).labels_.tolist()) == {0, 1}


def test_kmeans_ignores_labeled_images_of_weight_0(split, backbone, bank):
    weight = np.where(split.labeled.labels == 1, 0.0, 0.4)
    method = learned("kmeans", split, backbone, bank, weight=weight)
    kept = split.labeled.labels != 1
    features = frozen_features(split, backbone, bank)
    labels = np.concatenate([split.labeled.labels[kept], np.full(len(split.unlabeled), UNLABELED)])
    rows = np.concatenate([np.flatnonzero(kept), np.arange(len(kept), len(features))])
    expected = SemiSupKMeans(5, n_init=2).fit(features[rows], labels)
    assert method.labels_.tolist() == expected.labels_[kept.sum() :].tolist()


def test_nothing_is_tuned(split, backbone, bank):
    assert learned("kmeans", split, backbone, bank).backbone_.fingerprint == backbone.fingerprint
