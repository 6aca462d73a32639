"""No selection and no pool, as objects like the others."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DegenerateError
from justright.geometry import ClassSums
from justright.selection.base import Resample, Selector
from justright.selection.engines import Engine, in_process, merge_all
from justright.selection.shards import ArrayLike, PoolItem, PoolShards, TargetShards, pool_batch
from justright.types import Array


class UniformSelector(Selector):
    """Every class weighs 1: discovery as it is without selection. The target is not looked at."""

    weight, reason = 1.0, "kept: every class weighs 1"

    def fit(self, pool_features: ArrayLike, pool_labels: ArrayLike, target_features: ArrayLike) -> UniformSelector:
        """Learn which classes there are."""
        return self.fit_stream([(pool_features, pool_labels)], [target_features])

    def fit_stream(
        self, pool_shards: PoolShards, target_shards: TargetShards, *, engine: Engine = in_process
    ) -> UniformSelector:
        """Learn which classes there are, shard by shard."""
        found = merge_all(ClassSums(), _shard_classes, enumerate(pool_shards), engine).classes
        if len(found) == 0:
            raise DegenerateError("the pool is empty", expected="at least one labeled image")
        self.classes_ = found
        self.class_weight_ = np.full(len(found), self.weight)
        self.reason_ = [self.reason] * len(found)
        return self

    def resampler(
        self,
        pool_features: ArrayLike,
        pool_labels: ArrayLike,
        target_features: ArrayLike,
        target_clusters: ArrayLike | None = None,
    ) -> Resample:
        """Whatever the target, the weights are the same."""
        weight = self.fit(pool_features, pool_labels, target_features).class_weight_

        def weigh(rows: Int[Array, " rows"], seed: int) -> Float[Array, " classes"]:
            return weight

        return weigh


class OwnSelector(UniformSelector):
    """Every class weighs 0: discovery with the target's own labels alone."""

    weight, reason = 0.0, "left out: own labels only"


def _shard_classes(item: PoolItem) -> ClassSums:
    features, labels = pool_batch(item)
    return ClassSums().update(features[:, :0], labels)  # which classes there are, without the work of sums
