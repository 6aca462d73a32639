"""Clusters of features around the known classes: how the methods without a classifier find categories."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from justright.clustering import SemiSupKMeans
from justright.discovery.assigner import CategoryAssigner
from justright.discovery.training_data import TrainingData
from justright.types import UNLABELED, Array


def clusters_of(
    data: TrainingData, features: Float[Array, "images dim"], n_categories: int, n_init: int, seed: int
) -> tuple[CategoryAssigner, Int[Array, " target"]]:
    """Semi-supervised k-means over known and target images: known class k is cluster k."""
    labeled = data.labeled
    rows = np.concatenate([labeled, data.unlabeled])
    labels = np.where(np.arange(len(rows)) < len(labeled), data.labels[rows], UNLABELED)
    found = SemiSupKMeans(n_categories, n_init=n_init, seed=seed).fit(features[rows], labels)
    assigner = CategoryAssigner.of_centroids(np.asarray(found.centroids_))
    return assigner, np.asarray(found.labels_[len(labeled) :], dtype=np.int64)
