"""The contract of all selectors: what a new one supplies, and what follows from it."""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypeVar

import numpy as np
from jaxtyping import Float, Int

from justright.selection.class_weights import ClassWeights, SelectionPlot
from justright.selection.shards import ArrayLike, PoolFeatures, TargetFeatures, as_labels, as_numpy
from justright.utils.errors import DataError, JustrightError
from justright.utils.parallel import Engine, in_process
from justright.utils.settings import refuse_out_of_range
from justright.utils.types import Array

logger = logging.getLogger(__name__)

Fitted = TypeVar("Fitted", bound="Selector")
# rows of the target (with repeats) and a seed in, class weights out
Resample: TypeAlias = Callable[[Int[Array, " rows"], int], Float[Array, " classes"]]


@dataclass(repr=False, eq=False)
class Selector(ABC):
    """Weighs the classes of a labeled pool by how well they guide discovery in a target.

    A selector is a dataclass whose fields are its parameters (`utils.settings.setting`) and supplies `_weigh`. With
    a line in `justright.selection.SELECTORS`, commands, their options, files, figures and pages know it. It may also
    say what its figure shows (`plot`), which parameters do not go together (`check`), and what a resample of the target
    leaves as it is (`resampler`).

    After `fit` or `fit_stream` it has weights_, its decision as a `ClassWeights`, and of that classes_, class_weight_
    and reason_, one entry per class of the pool.
    """

    @abstractmethod
    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        """Decide what the classes of the pool weigh; may set further attributes that end in `_`."""

    def plot(self, weights: ClassWeights) -> SelectionPlot | None:
        """What the figure of a decision shows; None for no figure. Only parameters and `weights` may be asked."""
        return SelectionPlot(weights.measure) if weights.measure else None

    def check(self) -> None:
        """Refuse parameters that cannot be, alone or together."""
        refuse_out_of_range(self)

    def fit(
        self: Fitted,
        pool_features: ArrayLike,
        pool_labels: ArrayLike,
        target_features: ArrayLike,
        target_clusters: ArrayLike | None = None,
        *,
        quiet: bool = False,
    ) -> Fitted:
        """Learn the weights from arrays in memory; for the rest see `fit_stream`."""
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
        """Learn the weights from shards, those of the pool with features and labels; one is in memory at a time.

        target_clusters  one per target image, in place of k-means, for selectors that cluster the target
        engine           where shards are worked on (`justright.utils.parallel.ENGINES`); does not change the weights
        quiet            do not log remarks about the weights: the caller passes on `weights_.remarks`
        """
        self.check()
        target = TargetFeatures(target_shards, engine, target_clusters)
        weights = self.weights_ = self._weigh(PoolFeatures(pool_shards, engine), target)
        self.classes_, self.class_weight_, self.reason_ = weights.classes, weights.weight, weights.reason
        for remark in () if quiet else weights.remarks:
            logger.warning(remark.for_python())
        return self

    @property
    def selected_classes_(self) -> Int[Array, " selected"]:
        """The classes that weigh more than 0."""
        return self.classes_[self.class_weight_ > 0]

    def sample_weight(self, labels: ArrayLike) -> Float[Array, " images"]:
        """The weight of each image, omega_i = omega^c for label c: multiplies its loss.

        Where single images were weighed, `labels` must be those of the pool, in its order.
        """
        if not hasattr(self, "classes_"):
            raise JustrightError("a selector that has not been fitted", expected="a call of fit first")
        wanted = as_labels(labels, len(as_numpy(labels)), "sample_weight")
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

    def resampler(self, pool: PoolFeatures, target: TargetFeatures) -> Resample:
        """A function that weighs anew on some rows of the target, for `stability`; both are one shard.

        This one starts from scratch; selectors override it to keep what does not change.
        """
        ((pool_features, labels),), (target_features,) = pool.shards, map(as_numpy, target.shards)

        def weigh(rows: Int[Array, " rows"], seed: int) -> Float[Array, " classes"]:
            return self.reseeded(seed).fit(pool_features, labels, target_features[rows], quiet=True).class_weight_

        return weigh

    def reseeded(self: Fitted, seed: int) -> Fitted:
        """A copy that draws differently, where this selector draws at all."""
        again = copy.copy(self)
        if "seed" in self.get_params():
            vars(again)["seed"] = seed
        return again

    def get_params(self) -> dict[str, Any]:
        """The parameters this selector was made with."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        said = [f"{f.name}={value!r}" for f in fields(self) if (value := getattr(self, f.name)) != f.default]
        return f"{type(self).__name__}({', '.join(said)})"
