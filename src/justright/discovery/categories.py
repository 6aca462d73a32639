"""What a method has learned when its training is over, and the two ways to get there: clusters and prototypes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.clustering import SemiSupKMeans
from justright.discovery.assigner import CategoryAssigner
from justright.discovery.training_data import TrainingData
from justright.types import UNLABELED, Array


@dataclass(frozen=True, eq=False)
class Learned:
    """How features find their category, and what came out for the images at hand.

    Attributes:
        features: of all images of the training data, as the backbone gives them after training.
        assigner: from a feature to a category.
        labels: the category of each target image.
    """

    features: Float[Array, "images dim"]
    assigner: CategoryAssigner
    labels: Int[Array, " target"]


def by_clusters(
    data: TrainingData, features: Float[Array, "images dim"], n_categories: int, n_init: int, seed: int
) -> Learned:
    """Semi-supervised k-means over known and target images: known class k is cluster k."""
    labeled = data.labeled
    rows = np.concatenate([labeled, data.unlabeled])
    labels = np.where(np.arange(len(rows)) < len(labeled), data.labels[rows], UNLABELED)
    found = SemiSupKMeans(n_categories, n_init=n_init, seed=seed).fit(features[rows], labels)
    assigner = CategoryAssigner.of_centroids(np.asarray(found.centroids_))
    return Learned(features, assigner, np.asarray(found.labels_[len(labeled) :], dtype=np.int64))


def by_prototypes(
    data: TrainingData,
    features: Float[Array, "images dim"],
    prototypes: Float[Array, "categories dim"],
    center: Float[Array, " dim"] | None,
) -> Learned:
    """The prototype that is nearest by the cosine, after `center` was taken off the feature."""
    assigner = CategoryAssigner.of_prototypes(prototypes, center)
    cluster, _, _ = assigner.assign(features[data.unlabeled])
    return Learned(features, assigner, cluster)
