"""Controls for studies: as much labeled data as another selector keeps, but not chosen by the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from justright.selection.base import RandomSelector, Selector
from justright.selection.beta import BetaSelector
from justright.selection.bins import BinsSelector
from justright.selection.class_weights import ClassWeights
from justright.selection.clustered import CLUSTER_COUNT, CLUSTERS_HELP
from justright.selection.cui import CuiSelector
from justright.selection.shards import PoolFeatures, TargetFeatures
from justright.utils.settings import WHOLE, one_of, setting

MATCHED: dict[str, type[BinsSelector | CuiSelector | BetaSelector]] = {
    "bins": BinsSelector,
    "cui": CuiSelector,
    "beta": BetaSelector,
}
LIKE_HELP = "the selector whose amount of labeled data is matched"


@dataclass(repr=False, eq=False)
class MatchedSelector(Selector):
    """Base of the controls. The pool is read twice, so its shards must be repeatable."""

    like: str = setting("bins", LIKE_HELP, one_of(*MATCHED))
    n_clusters: int | None = setting(None, CLUSTERS_HELP, CLUSTER_COUNT)
    seed: int = setting(0, "decides which classes are drawn, and the clusters of the target", WHOLE)

    def _matched(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        """The weights of the selector `like`, with its default parameters."""
        return MATCHED[self.like](n_clusters=self.n_clusters, seed=self.seed)._weigh(pool, target)


class RandomMatchedSelector(MatchedSelector):
    """Weights 0 and 1: random classes, as many as the total weight of the classes of `like`, at least one."""

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        total = float(self._matched(pool, target).weight.sum())
        share = min(1.0, total / len(pool.classes()))
        return RandomSelector(share, self.seed)._weigh(pool, target)


@dataclass(repr=False, eq=False)
class UniformMatchedSelector(MatchedSelector):
    """Every class has the same weight: the mean weight of an image under `like`."""

    like: str = setting("beta", LIKE_HELP, one_of(*MATCHED))

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        matched = self._matched(pool, target)
        mean = float(np.average(matched.weight, weights=pool.sums().counts))
        reason = [f"{mean:.3g}: the mean weight of {self.like}"] * len(matched.classes)
        return ClassWeights(matched.classes, np.full(len(matched.classes), mean), reason)
