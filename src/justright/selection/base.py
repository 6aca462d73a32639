"""The base class of selectors, and baselines: all of the pool, none of it, a random part of it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Int

from justright.selection.class_weights import ClassWeights, SelectionPlot
from justright.selection.shards import ArrayLike, PoolFeatures, TargetFeatures
from justright.utils.errors import DataError, JustrightError
from justright.utils.estimator import Estimator
from justright.utils.parallel import Engine, in_process
from justright.utils.seeding import generator
from justright.utils.settings import SHARE, WHOLE, check_ranges, setting
from justright.utils.types import Array
from justright.utils.validation import check_labels

logger = logging.getLogger(__name__)

Fitted = TypeVar("Fitted", bound="Selector")


@dataclass(repr=False, eq=False)
class Selector(Estimator, ABC):
    """Weighs the classes of a labeled pool by how well they guide discovery in a target.

    A selector is a dataclass whose fields are its parameters (`justright.setting`) and implements `_weigh`. A line in
    `justright.SELECTORS` adds it to commands and their options, files, figures and pages. It may override its figure
    (`plot`) and the validation of parameters that exclude each other (`check`).

    Attributes after `fit` or `fit_stream`: weights_, the decision as a `ClassWeights`; and from it classes_,
    class_weight_ and reason_, one entry per class of the pool.
    """

    @abstractmethod
    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        """Compute the weights of the classes of the pool; may set further attributes that end in `_`."""

    def plot(self, weights: ClassWeights) -> SelectionPlot | None:
        """The figure of a decision, from parameters and `weights` alone; None for no figure."""
        return SelectionPlot(weights.measure) if weights.measure else None

    def check(self) -> None:
        """Validate the parameters."""
        check_ranges(self)

    def fit(
        self: Fitted,
        pool_features: ArrayLike,
        pool_labels: ArrayLike,
        target_features: ArrayLike,
        target_clusters: ArrayLike | None = None,
        *,
        quiet: bool = False,
    ) -> Fitted:
        """Learn the weights from arrays in memory; see `fit_stream` for the parameters."""
        return self.fit_stream([(pool_features, pool_labels)], [target_features], target_clusters, quiet=quiet)

    def fit_stream(
        self: Fitted,
        pool_shards: Iterable[tuple[ArrayLike, ArrayLike]],
        target_shards: Iterable[ArrayLike],
        target_clusters: ArrayLike | None = None,
        *,
        engine: Engine = in_process,
        quiet: bool = False,
    ) -> Fitted:
        """Learn the weights from shards of features, and of labels for the pool; one shard is in memory at a time.

        target_clusters  one per target image, in place of k-means, for selectors that cluster the target
        engine           where shards are processed (`justright.utils.parallel.ENGINES`); does not change the weights
        quiet            do not log `weights_.warnings`, for callers that show them
        """
        self.check()
        target = TargetFeatures(target_shards, engine, target_clusters)
        weights = self.weights_ = self._weigh(PoolFeatures(pool_shards, engine), target)
        self.classes_, self.class_weight_, self.reason_ = weights.classes, weights.weight, weights.reason
        for warning in () if quiet else weights.warnings:
            logger.warning(warning)
        return self

    @property
    def selected_classes_(self) -> Int[Array, " selected"]:
        """The classes with a weight above 0."""
        return self.classes_[self.class_weight_ > 0]

    def sample_weight(self, labels: ArrayLike) -> Float[Array, " images"]:
        """The weight of each image, omega_i = omega^c for label c: multiplies its loss.

        If single images were weighed, `labels` must be those of the pool, in its order.
        """
        if not hasattr(self, "classes_"):
            raise JustrightError("a selector that has not been fitted", expected="a call of fit before")
        wanted = check_labels(labels)
        position = np.searchsorted(self.classes_, wanted).clip(max=len(self.classes_) - 1)
        if len(unknown := wanted[self.classes_[position] != wanted]):
            problem = f"label {unknown[0]} is none of the {len(self.classes_)} classes of the pool"
            raise DataError(problem, expected="labels of the pool that fit saw")
        images = self.weights_.images
        if images is None:
            return self.class_weight_[position]
        if not np.array_equal(wanted, images.labels):
            raise JustrightError(
                "labels other than those of the pool",
                expected="the pool's own labels in its order: at level='image' each image has its own weight",
            )
        return images.weight


class UniformSelector(Selector):
    """Every class weighs 1: discovery without selection. The target is not read."""

    weight, reason = 1.0, "kept: every class weighs 1"

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        classes = pool.classes()
        return ClassWeights(classes, np.full(len(classes), self.weight), [self.reason] * len(classes))


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
