"""What selectors that compare classes of the pool with clusters of the target have in common."""

from __future__ import annotations

import copy
from abc import abstractmethod

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import ClassSums
from justright.selection.base import Resample, Selector
from justright.selection.engines import Engine, in_process
from justright.selection.shards import ArrayLike, PoolShards, TargetShards, pool_sums, target_batches
from justright.selection.target_clusters import ClusterCount, cluster_target
from justright.types import Array


class ClusteredSelector(Selector):
    """Clusters the target, and decides from the centroids of classes and clusters alone.

    A subclass has the parameters below and says how to decide. Attribute: target_clusters_ per target image.
    """

    n_clusters: ClusterCount
    metric: str
    mass: str
    seed: int
    target_clusters_: Int[Array, " target"]

    @abstractmethod
    def _check_options(self) -> None:
        """Refuse options that mean nothing."""

    @abstractmethod
    def _decide(self, pool: ClassSums, clusters: ClassSums) -> ClusteredSelector:
        """From centroids to weights: set what `Selector` promises."""

    def fit(
        self,
        pool_features: ArrayLike,
        pool_labels: ArrayLike,
        target_features: ArrayLike,
        target_clusters: ArrayLike | None = None,
    ) -> ClusteredSelector:
        """Select classes of the pool. `target_clusters` replace k-means."""
        return self.fit_stream([(pool_features, pool_labels)], [target_features], target_clusters)

    def fit_stream(
        self,
        pool_shards: PoolShards,
        target_shards: TargetShards,
        target_clusters: ArrayLike | None = None,
        *,
        engine: Engine = in_process,
    ) -> ClusteredSelector:
        """Select classes of the pool, one shard in memory at a time. K-means reads the target twice."""
        self._check_options()
        is_l2 = self.metric == "l2"
        pool = pool_sums(pool_shards, normalize=is_l2, engine=engine)  # Eq. 7
        dim = pool.sums.shape[1]
        self.target_clusters_, clusters = cluster_target(
            target_shards, dim, self.n_clusters, target_clusters, self.seed, normalize=is_l2, engine=engine
        )
        return self._decide(pool, clusters)

    def resampler(
        self,
        pool_features: ArrayLike,
        pool_labels: ArrayLike,
        target_features: ArrayLike,
        target_clusters: ArrayLike | None = None,
    ) -> Resample:
        """Pool centroids and clusters stay; which images count, and what the seed decides, is drawn anew."""
        self._check_options()
        is_l2 = self.metric == "l2"
        pool = pool_sums([(pool_features, pool_labels)], normalize=is_l2)
        dim = pool.sums.shape[1]
        clusters, _ = cluster_target(
            [target_features], dim, self.n_clusters, target_clusters, self.seed, normalize=is_l2
        )
        (target,) = target_batches([target_features], dim, normalize=is_l2)

        def weigh(rows: Int[Array, " rows"], seed: int) -> Float[Array, " classes"]:
            again = copy.copy(self)
            again.seed = seed
            return again._decide(pool, ClassSums().update(target[rows], clusters[rows])).class_weight_

        return weigh

    def _mass(self, sums: ClassSums) -> Float[Array, " n"]:
        return sums.counts.astype(np.float64) if self.mass == "images" else np.ones(len(sums.counts))
