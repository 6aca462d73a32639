from __future__ import annotations

import numpy as np
from tests.discovery.tiny import data_of

from justright.clustering import SemiSupKMeans
from justright.discovery.categories import by_clusters, by_prototypes


def features_for(data):
    return np.random.default_rng(0).normal(size=(len(data.images), 6)).astype(np.float32)


def test_clusters_start_with_the_known_classes(split):
    data = data_of(split, np.where(split.labeled.labels == 1, 0.0, 1.0))
    features = features_for(data)
    learned = by_clusters(data, features, 4, n_init=3, seed=1)
    rows = np.concatenate([data.labeled, data.unlabeled])
    given = np.concatenate([data.labels[data.labeled], np.full(len(data.unlabeled), -1)])
    expected = SemiSupKMeans(4, n_init=3, seed=1).fit(features[rows], given)
    assert learned.labels.tolist() == expected.labels_[len(data.labeled) :].tolist()
    assert learned.assigner.vectors.shape == (4, 6)
    assert learned.features is features
    for number, label in enumerate(data.known_labels):
        own = rows[expected.labels_ == number]
        of_class = np.flatnonzero(split.labeled.labels == label)
        assert set(of_class) <= set(own.tolist())


def test_the_prototype_of_the_largest_cosine_wins_after_the_center_was_taken_off(split):
    data = data_of(split)
    features, prototypes = features_for(data), np.random.default_rng(1).normal(size=(3, 6)).astype(np.float32)
    for center in (None, np.full(6, 0.5, np.float32)):
        learned = by_prototypes(data, features, prototypes, center)
        for row, label in zip(data.unlabeled, learned.labels, strict=True):
            h = features[row] - (0 if center is None else center)
            cosine = [h @ c / np.linalg.norm(h) / np.linalg.norm(c) for c in prototypes]
            assert label == np.argmax(cosine)
