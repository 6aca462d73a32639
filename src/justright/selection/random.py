"""A choice by chance: what every selection should beat."""

from __future__ import annotations

import numpy as np

from justright.seeding import generator
from justright.selection.engines import Engine, in_process
from justright.selection.shards import PoolShards, TargetShards
from justright.selection.uniform import UniformSelector


class RandomSelector(UniformSelector):
    """Weights 0 and 1: a share of the classes, drawn at random, at least one. The target is not looked at."""

    def __init__(self, share: float = 0.5, seed: int = 0):
        self.share = share
        self.seed = seed

    def fit_stream(
        self, pool_shards: PoolShards, target_shards: TargetShards, *, engine: Engine = in_process
    ) -> RandomSelector:
        """Learn which classes there are, and draw."""
        super().fit_stream(pool_shards, target_shards, engine=engine)
        n_kept = max(1, round(self.share * len(self.classes_)))
        is_kept = np.zeros(len(self.classes_), dtype=bool)
        is_kept[generator(self.seed, "random selection").permutation(len(is_kept))[:n_kept]] = True
        self.class_weight_ = is_kept.astype(np.float64)
        self.reason_ = ["kept: drawn at random" if kept else "left out: not drawn" for kept in is_kept]
        return self
