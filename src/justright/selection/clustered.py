"""What selectors that compare classes of the pool with clusters of the target have in common."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import DISTANCES, ClassSums
from justright.selection.base import Resample, Selector
from justright.selection.class_weights import ClassWeights
from justright.selection.shards import PoolFeatures, TargetFeatures
from justright.selection.target_clusters import ClusterCount, cluster_target
from justright.utils.settings import one_of
from justright.utils.types import Array

METRIC, METRIC_HELP = one_of(*DISTANCES), "distance of centroids; l2: of images brought to length 1"
MASS, MASS_HELP = one_of("images", "uniform"), "a class or cluster counts as its images, or all alike"
CLUSTERS_HELP = "categories in the target; see `justright estimate`"


class ClusteredSelector(Selector):
    """Clusters the target, and decides from the centroids of classes and clusters alone.

    A subclass has the parameters below and says how to decide. Attribute: target_clusters_ per target image.
    """

    n_clusters: ClusterCount
    metric: str
    mass: str
    seed: int

    @abstractmethod
    def _decide(self, classes: ClassSums, clusters: ClassSums) -> ClassWeights:
        """From the centroids of classes and clusters to weights."""

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        """K-means reads the target twice; clusters that are given replace it."""
        classes = pool.sums(normalize=self.metric == "l2")  # Eq. 7
        self.target_clusters_, clusters = self._cluster(target, classes)  # Eq. 10
        return self._decide(classes, clusters)

    def resampler(self, pool: PoolFeatures, target: TargetFeatures) -> Resample:
        """Pool centroids and clusters stay; which images count, and what the seed decides, is drawn anew."""
        is_l2 = self.metric == "l2"
        classes = pool.sums(is_l2)
        cluster, _ = self._cluster(target, classes)
        (features,) = target.batches(classes.sums.shape[1], is_l2)

        def weigh(rows: Int[Array, " rows"], seed: int) -> Float[Array, " classes"]:
            return self.reseeded(seed)._decide(classes, ClassSums().update(features[rows], cluster[rows])).weight

        return weigh

    def _cluster(self, target: TargetFeatures, classes: ClassSums) -> tuple[Int[Array, " target"], ClassSums]:
        dim = classes.sums.shape[1]
        return cluster_target(target, dim, self.n_clusters, self.seed, normalize=self.metric == "l2")

    def _mass(self, sums: ClassSums) -> Float[Array, " n"]:
        return sums.counts.astype(np.float64) if self.mass == "images" else np.ones(len(sums.counts))
