"""The contract of all selectors, and what follows from class weights alone."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DataError, JustrightError
from justright.selection.engines import Engine, in_process
from justright.selection.shards import ArrayLike, PoolShards, TargetShards, as_labels, as_numpy
from justright.types import Array

Resample: TypeAlias = Callable[[Int[Array, " rows"], int], Float[Array, " classes"]]
"""Rows of the target (with repeats) and a seed in, class weights out."""


class Selector(ABC):
    """Weighs the classes of a labeled pool by how well they guide discovery in a target.

    `fit` or `fit_stream` set, aligned and one entry per class of the pool,
    classes_       labels in ascending order
    class_weight_  at least 0; 0 leaves a class out, and 1 for all changes nothing
    reason_        in a few words, why a class weighs what it weighs
    and whatever led there, under names of the selector's own.
    """

    classes_: Int[Array, " classes"]
    class_weight_: Float[Array, " classes"]
    reason_: list[str]

    @abstractmethod
    def fit(self, pool_features: ArrayLike, pool_labels: ArrayLike, target_features: ArrayLike) -> Selector:
        """Learn the weights from arrays in memory."""

    @abstractmethod
    def fit_stream(
        self, pool_shards: PoolShards, target_shards: TargetShards, *, engine: Engine = in_process
    ) -> Selector:
        """Learn the same weights from shards, one in memory at a time.

        `engine` is where shards are worked on, see `justright.selection.engines`; it does not change the weights.
        """

    @property
    def selected_classes_(self) -> Int[Array, " selected"]:
        """The classes that weigh more than 0."""
        return self.classes_[self.class_weight_ > 0]

    def sample_weight(self, labels: ArrayLike) -> Float[Array, " images"]:
        """The weight of each image, omega_i = omega^c for label c: multiplies its loss."""
        position = self._positions(labels)
        return self.class_weight_[position]

    def sample_probability(self, labels: ArrayLike, by: str = "image") -> Float[Array, " images"]:
        """The probability to draw each image, for resampling in place of weighting (Tab. A2). Sums to 1.

        by="image"  p_i = omega_i / sum_j omega_j: the same expected loss as weighting it
        by="class"  draw a class by its weight, then one of its images: p_i = omega_c / (N_c sum_c' omega_c')
        """
        weight = self.sample_weight(labels)
        if by == "class":
            _, position, counts = np.unique(self._positions(labels), return_inverse=True, return_counts=True)
            weight = weight / counts[position]
        elif by != "image":
            raise JustrightError(f"by={by!r}", expected="'image' or 'class'")
        if not weight.sum() > 0:
            raise DataError("all these images weigh 0", expected="at least one image of a selected class")
        return weight / weight.sum()

    def get_params(self) -> dict[str, Any]:
        """The arguments this selector was made with."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def resampler(
        self,
        pool_features: ArrayLike,
        pool_labels: ArrayLike,
        target_features: ArrayLike,
        target_clusters: ArrayLike | None = None,
    ) -> Resample:
        """A function that weighs anew on some rows of the target, for `stability`.

        This one fits from scratch; selectors override it to keep what does not change.
        """
        target = as_numpy(target_features)

        def weigh(rows: Int[Array, " rows"], seed: int) -> Float[Array, " classes"]:
            again = self.reseeded(seed)
            return again.fit(pool_features, pool_labels, target[rows]).class_weight_

        return weigh

    def reseeded(self, seed: int) -> Selector:
        """A copy that draws differently, where this selector draws at all."""
        again = copy.copy(self)
        if "seed" in self.get_params():
            vars(again)["seed"] = seed
        return again

    def _positions(self, labels: ArrayLike) -> Int[Array, " images"]:
        if not hasattr(self, "classes_"):
            raise JustrightError("a selector that has not been fitted", expected="a call of fit first")
        wanted = as_labels(labels, len(as_numpy(labels)), "sample_weight")
        position = np.searchsorted(self.classes_, wanted).clip(max=len(self.classes_) - 1)
        is_unknown = self.classes_[position] != wanted
        if is_unknown.any():
            raise DataError(
                f"label {wanted[is_unknown][0]} is none of the {len(self.classes_)} classes of the pool",
                expected="labels of the pool that fit saw",
            )
        return position

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        said = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name].default]
        return f"{type(self).__name__}({', '.join(said)})"


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """An option is one of its choices."""
    if value not in choices:
        raise JustrightError(f"{name}={value!r}", expected=f"one of {', '.join(choices)}")
