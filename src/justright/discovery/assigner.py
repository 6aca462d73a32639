"""Assign features to categories: the most likely one, its confidence, and whether any category fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from justright.clustering import SemiSupKMeans
from justright.clustering.principal import BLOCK_ROWS, in_directions, principal_directions
from justright.discovery.configs import Config
from justright.discovery.training_data import TrainingData
from justright.geometry import below_quantile, quantiles, unit_rows
from justright.utils.parallel import blas_threads, in_threads, n_cores
from justright.utils.types import Array, Features, Mask

TEMPERATURES = (1e-3, 1e1)  # search range of the calibration

Center = Float[Array, " dim"] | None  # subtracted from features, where their mean dominates them


@dataclass(frozen=True, eq=False)
class CategoryAssigner:
    """Assigns each feature to the category with the highest score; a category is a vector and an offset.

        s_k = z / |z| . v_k + o_k,     z = (h - m) P,     confidence = softmax_k(s_k / temperature) of the best

    m is the `center`, or 0; P the principal `directions` in which features were clustered, or the identity. Prototypes
    of a classifier are unit vectors without offset (Eq. 3), so s is a cosine. Centroids have the offset -|c|^2 / 2, so
    that the best is the nearest. `reference` holds quantiles of the best s over the target: an image with a lower s
    than nearly all of them fits no category.
    """

    vectors: Float[Array, "categories kept"]
    offset: Float[Array, " categories"]
    temperature: float = 1.0
    reference: Float[Array, " quantiles"] | None = None
    center: Center = None
    directions: Float[Array, "dim kept"] | None = None

    @staticmethod
    def of_prototypes(prototypes: Float[Array, "categories dim"], center: Center = None) -> CategoryAssigner:
        """Return an assigner to the prototype with the largest cosine."""
        unit = unit_rows(prototypes).astype(np.float32)
        return CategoryAssigner(unit, np.zeros(len(unit), np.float32), center=center)

    @staticmethod
    def of_centroids(centroids: Float[Array, "categories kept"]) -> CategoryAssigner:
        """Return an assigner to the centroid nearest to the normalized feature."""
        offset = -0.5 * np.sum(np.square(centroids, dtype=np.float64), axis=1)
        return CategoryAssigner(centroids.astype(np.float32), offset.astype(np.float32))

    def scores(self, features: Float[Array, "images dim"]) -> Float[Array, "images categories"]:
        """Compute s for every image and category."""
        return unit_rows(self.compared(features)) @ self.vectors.T + self.offset

    def compared(self, features: Float[Array, "images dim"]) -> Float[Array, "images kept"]:
        """Center and project features; the result is not normalized."""
        centered = features if self.center is None else features - self.center
        return centered if self.directions is None else centered @ self.directions

    def assign(
        self, features: Float[Array, "images dim"]
    ) -> tuple[Int[Array, " images"], Float[Array, " images"], Float[Array, " images"]]:
        """Return the best category of each image, its confidence and its s."""
        starts = range(0, max(1, len(features)), BLOCK_ROWS)  # without images: one empty block
        with blas_threads(1):  # one block per core: the bytes do not depend on the number of cores
            blocks = list(in_threads(lambda at: self._assign(features[at : at + BLOCK_ROWS]), starts, n_cores()))
        cluster, confidence, best = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return cluster, confidence, best

    def _assign(self, features: Float[Array, "block dim"]) -> tuple[Array, Array, Array]:
        scores = self.scores(features)
        cluster = scores.argmax(axis=1)
        rows = np.arange(len(scores))
        confidence = softmax(scores.astype(np.float64) / self.temperature, axis=1)[rows, cluster]
        return cluster, confidence.astype(np.float32), scores[rows, cluster]

    def is_neither(self, best: Float[Array, " images"], level: float) -> Mask:
        """Whether the best s of an image is below the quantile `level` of the target's."""
        return below_quantile(best, self.reference, level)

    def calibrated(self, features: Float[Array, "labeled dim"], labels: Int[Array, " labeled"]) -> CategoryAssigner:
        """Return a copy with the temperature of highest likelihood on labeled images (Guo et al., ICML 2017)."""
        if not len(labels):
            return self
        with blas_threads(1):
            scores, rows = self.scores(features).astype(np.float64), np.arange(len(labels))

        def negative_log_likelihood(log_temperature: float) -> float:
            return -float(log_softmax(scores / np.exp(log_temperature), axis=1)[rows, labels].mean())

        low, high = np.log(TEMPERATURES)
        best = minimize_scalar(negative_log_likelihood, bounds=(low, high), method="bounded")
        return replace(self, temperature=float(np.exp(best.x)))

    def with_reference(self, best: Float[Array, " target"]) -> CategoryAssigner:
        """Return a copy with a `reference` computed from the best s of each target image."""
        return replace(self, reference=quantiles(best))


class Learned(NamedTuple):
    """The result of a method: the assigner from features to categories, and the category of each target image."""

    assigner: CategoryAssigner
    labels: Int[Array, " target"]


def by_clusters(
    data: TrainingData, features: Features, n_categories: int, config: Config, seed: int, ends_in_norm: bool
) -> Learned:
    """Semi-supervised k-means over known and target images: known class k is cluster k."""
    center, directions, clustered = None, None, features[data.seen]
    if config.in_directions(ends_in_norm):
        center, directions = principal_directions(clustered, n_categories)
        clustered = in_directions(clustered, center, directions)
    kmeans = SemiSupKMeans(n_categories, n_init=config.n_init, max_iter=config.max_iter, seed=seed)
    kmeans.fit(clustered, data.labels[data.seen])
    assigner = replace(CategoryAssigner.of_centroids(kmeans.centroids_), center=center, directions=directions)
    return Learned(assigner, data.of_target(kmeans.labels_[len(data.labeled) :]))
