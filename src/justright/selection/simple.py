"""Baselines of selection: all of the pool, none of it, a random part of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from justright.selection.base import Resample, Selector
from justright.selection.class_weights import ClassWeights
from justright.selection.shards import PoolFeatures, TargetFeatures
from justright.utils.seeding import generator
from justright.utils.settings import SHARE, WHOLE, setting


class UniformSelector(Selector):
    """Every class weighs 1: discovery without selection. The target is not read."""

    weight, reason = 1.0, "kept: every class weighs 1"

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        classes = pool.classes()
        return ClassWeights(classes, np.full(len(classes), self.weight), [self.reason] * len(classes))

    def resampler(self, pool: PoolFeatures, target: TargetFeatures) -> Resample:
        """The weights do not depend on the target."""
        weight = self._weigh(pool, target).weight
        return lambda rows, seed: weight


class OwnSelector(UniformSelector):
    """Every class weighs 0: discovery with the target's own labels alone."""

    weight, reason = 0.0, "left out: own labels only"


@dataclass(repr=False, eq=False)
class RandomSelector(UniformSelector):
    """Weights 0 and 1: a share of the classes, drawn at random, at least one. The target is not read."""

    share: float = setting(0.5, "share of the classes to keep", SHARE)
    seed: int = setting(0, "decides which classes are drawn", WHOLE)

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        classes = pool.classes()
        n_kept = max(1, round(self.share * len(classes)))
        is_kept = np.zeros(len(classes), dtype=bool)
        is_kept[generator(self.seed, "random selection").permutation(len(is_kept))[:n_kept]] = True
        reason = ["kept: drawn at random" if kept else "left out: not drawn" for kept in is_kept]
        return ClassWeights(classes, is_kept.astype(np.float64), reason)
