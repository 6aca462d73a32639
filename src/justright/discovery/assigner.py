"""From a feature to a category: the likeliest one, how sure that is, and whether any fits at all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from justright.clustering import SemiSupKMeans
from justright.clustering.principal import in_directions, principal_directions
from justright.discovery.configs import Config
from justright.discovery.training_data import TrainingData
from justright.geometry import unit_rows
from justright.utils.errors import DataError
from justright.utils.parallel import blas_threads, in_threads, n_cores
from justright.utils.types import Array, Mask

BLOCK_ROWS = 4096
N_QUANTILES = 1001
TEMPERATURES = (1e-3, 1e1)  # between these the calibration looks

Center = Float[Array, " dim"] | None  # what is taken off features that share a large part


@dataclass(frozen=True, eq=False)
class CategoryAssigner:
    """A vector and an offset for each category; what fits best wins.

        s_k = z / |z| . v_k + o_k,     z = (h - m) P,     confidence = softmax_k(s_k / temperature) of the best

    m is the `center` that was taken off, or 0; P the `directions` that features were clustered in, or none. Prototypes
    of a classifier are unit vectors without offset (Eq. 3), so s is a cosine. Centroids have the offset -|c|^2 / 2, so
    that the best is the nearest. `reference` holds quantiles of the best s over the target: an image whose own is lower
    than nearly all of them looks like no category.
    """

    vectors: Float[Array, "categories kept"]
    offset: Float[Array, " categories"]
    temperature: float = 1.0
    reference: Float[Array, " quantiles"] | None = None
    center: Center = None
    directions: Float[Array, "dim kept"] | None = None

    @staticmethod
    def of_prototypes(prototypes: Float[Array, "categories dim"], center: Center = None) -> CategoryAssigner:
        """An assigner that takes the prototype with the largest cosine."""
        unit = unit_rows(prototypes).astype(np.float32)
        return CategoryAssigner(unit, np.zeros(len(unit), np.float32), center=center)

    @staticmethod
    def of_centroids(centroids: Float[Array, "categories kept"]) -> CategoryAssigner:
        """An assigner that takes the centroid nearest to the feature brought to length 1."""
        offset = -0.5 * np.sum(np.square(centroids, dtype=np.float64), axis=1)
        return CategoryAssigner(centroids.astype(np.float32), offset.astype(np.float32))

    def scores(self, features: Float[Array, "images dim"]) -> Float[Array, "images categories"]:
        """s for every image and category."""
        return unit_rows(self.compared(features)) @ self.vectors.T + self.offset

    def compared(self, features: Float[Array, "images dim"]) -> Float[Array, "images kept"]:
        """Features as they are compared with the categories, not yet of length 1."""
        centered = features if self.center is None else features - self.center
        return centered if self.directions is None else centered @ self.directions

    def assign(
        self, features: Float[Array, "images dim"]
    ) -> tuple[Int[Array, " images"], Float[Array, " images"], Float[Array, " images"]]:
        """Category, confidence and s of the best, for each image."""
        starts = range(0, max(1, len(features)), BLOCK_ROWS)  # no images are one empty block
        with blas_threads(1):  # a block a core: the bytes do not depend on how many there are
            found = list(in_threads(lambda at: self._assign(features[at : at + BLOCK_ROWS]), starts, n_cores()))
        cluster, confidence, best = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return cluster, confidence, best

    def _assign(self, features: Float[Array, "block dim"]) -> tuple[Array, Array, Array]:
        scores = self.scores(features)
        cluster = scores.argmax(axis=1)
        rows = np.arange(len(scores))
        confidence = softmax(scores.astype(np.float64) / self.temperature, axis=1)[rows, cluster]
        return cluster, confidence.astype(np.float32), scores[rows, cluster]

    def is_neither(self, best: Float[Array, " images"], level: float) -> Mask:
        """Whether an image fits its category worse than all but a share `level` of the target's images do theirs."""
        if not 0 <= level < 1:
            raise DataError(f"a share of {level} for images of no category", expected="at least 0, below 1")
        if self.reference is None or level == 0:
            return np.zeros(len(best), dtype=bool)
        return best < np.quantile(self.reference, level)

    def calibrated(self, features: Float[Array, "labeled dim"], labels: Int[Array, " labeled"]) -> CategoryAssigner:
        """The same assigner with the temperature under which labeled images are likeliest (Guo et al., ICML 2017)."""
        if not len(labels):
            return self
        with blas_threads(1):
            scores, rows = self.scores(features).astype(np.float64), np.arange(len(labels))

        def negative_log_likelihood(log_temperature: float) -> float:
            return -float(log_softmax(scores / np.exp(log_temperature), axis=1)[rows, labels].mean())

        low, high = np.log(TEMPERATURES)
        found = minimize_scalar(negative_log_likelihood, bounds=(low, high), method="bounded")
        return replace(self, temperature=float(np.exp(found.x)))

    def with_reference(self, features: Float[Array, "target dim"]) -> CategoryAssigner:
        """The same assigner with a `reference`: how well the images of the target fit."""
        _, _, best = self.assign(features)
        return replace(self, reference=np.quantile(best, np.linspace(0, 1, N_QUANTILES)).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Learned:
    """How features find their category, and what came out for the images at hand."""

    features: Float[Array, "images dim"]  # of all images of the training data, after training
    assigner: CategoryAssigner
    labels: Int[Array, " target"]  # the category of each target image


def by_clusters(
    data: TrainingData,
    features: Float[Array, "images dim"],
    n_categories: int,
    config: Config,
    seed: int,
    ends_in_norm: bool = True,
) -> Learned:
    """Semi-supervised k-means over known and target images: known class k is cluster k.

    ends_in_norm: whether features leave the network through a norm, as those of a ViT do.
    """
    center, directions, clustered = None, None, features[data.seen]
    if config.in_directions(ends_in_norm):
        center, directions = principal_directions(clustered, n_categories)
        clustered = in_directions(clustered, center, directions)
    found = SemiSupKMeans(n_categories, n_init=config.n_init, max_iter=config.max_iter, seed=seed)
    found.fit(clustered, data.labels[data.seen])
    assigner = CategoryAssigner.of_centroids(np.asarray(found.centroids_))
    assigner = replace(assigner, center=center, directions=directions)
    return Learned(features, assigner, data.of_target(np.asarray(found.labels_[len(data.labeled) :], dtype=np.int64)))


def by_prototypes(
    data: TrainingData, features: Float[Array, "images dim"], prototypes: Float[Array, "categories dim"], center: Center
) -> Learned:
    """The prototype that is nearest by the cosine, after `center` was taken off the feature."""
    assigner = CategoryAssigner.of_prototypes(prototypes, center)
    cluster, _, _ = assigner.assign(features[data.n_labeled :])
    return Learned(features, assigner, cluster)
