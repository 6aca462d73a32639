"""Features of pool and target, shard by shard: each shard is validated where it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import ClassSums, unit_rows
from justright.utils.errors import DataError, DegenerateError
from justright.utils.file_rows import ArrayLike as ArrayLike
from justright.utils.parallel import Engine, Result, in_process
from justright.utils.types import Array
from justright.utils.validation import check_directions, check_features, check_labels

PoolItem: TypeAlias = tuple[int, tuple[ArrayLike, ArrayLike]]
TargetItem: TypeAlias = tuple[int, ArrayLike]
"""A shard and its number, for error messages."""


@dataclass(frozen=True)
class PoolFeatures:
    """Features and labels of the pool, shard by shard, and the engine that processes them."""

    shards: Iterable[tuple[ArrayLike, ArrayLike]]
    engine: Engine = in_process

    def batches(self) -> Iterator[tuple[Float[Array, "images dim"], Int[Array, " images"]]]:
        """The shards, one in memory at a time."""
        return map(_pool_batch, enumerate(self.shards))

    def sums(self, normalize: bool = False, least: int = 2) -> ClassSums:
        """Sum and count of each class, of rows of length 1 if `normalize`; raises for fewer than `least` classes."""
        parts = self.engine(partial(_class_sums, normalize=normalize), enumerate(self.shards))
        sums = reduce(ClassSums.merge, parts, ClassSums())
        check_classes(sums.classes, least)
        return sums

    def classes(self) -> Int[Array, " classes"]:
        """The classes in ascending order; one is enough."""
        return self.sums(least=1).classes


@dataclass(frozen=True)
class TargetFeatures:
    """Features of the target, shard by shard, the engine that processes them, and clusters if the caller has them."""

    shards: Iterable[ArrayLike]
    engine: Engine = in_process
    clusters: ArrayLike | None = None

    def items(self) -> Iterator[TargetItem]:
        """The shards with images, and their numbers; raises if there is no image at all."""
        is_empty = True
        for number, features in enumerate(self.shards):
            if n_rows(features):
                is_empty = False
                yield number, features
        if is_empty:
            raise DegenerateError(
                "the target is empty",
                expected="at least one target image",
                advice="check the source of the target",
            )

    def each(self, work: Callable[[TargetItem], Result]) -> Iterator[Result]:
        """Results of `work` for each shard, in order; `work` validates a shard by `target_batch`."""
        return self.engine(work, self.items())

    def batches(self, dim: int, normalize: bool = False) -> Iterator[Float[Array, "images dim"]]:
        """The shards, one in memory at a time; `dim` is that of the pool."""
        return map(partial(target_batch, dim=dim, normalize=normalize), self.items())

    def n_images(self) -> int:
        """Number of images; shards of a generator are used up by this."""
        return sum(n_rows(shard) for _, shard in self.items())

    @property
    def is_repeatable(self) -> bool:
        """Whether the shards can be read several times; those of a generator cannot."""
        return iter(self.shards) is not self.shards

    def require_repeatable(self, why: str) -> None:
        """Raise if the shards can be read only once."""
        if not self.is_repeatable:
            raise DataError(
                f"target shards that can be read only once, while {why}",
                expected="a list, or an object that starts anew each time it is iterated",
            )


def target_batch(item: TargetItem, dim: int, normalize: bool = False) -> Float[Array, "images dim"]:
    """One shard of the target, validated against the dimensions of the pool; rows of length 1 if `normalize`."""
    number, features = item
    what = f"target shard {number}"
    array = checked_features(features, what)
    if array.shape[1] != dim:
        raise DataError(
            f"{what}: {array.shape[1]} dimensions, while the pool has {dim}",
            expected="pool and target in one space",
            advice="extract both with the same backbone",
        )
    return unit_rows(array) if normalize else array


def check_classes(classes: Int[Array, " classes"], least: int = 2) -> None:
    """Raise if there are fewer classes to select from."""
    if len(classes) < least:
        problem = "the pool is empty" if len(classes) == 0 else f"the pool has one class only, {classes[0]}"
        raise DegenerateError(problem, expected=f"at least {least} to select from", advice="add labeled data")


def n_rows(shard: ArrayLike) -> int:
    """The number of images of a shard, without reading it."""
    shape = np.shape(shard)
    return shape[0] if shape else 0


def _pool_batch(item: PoolItem) -> tuple[Float[Array, "images dim"], Int[Array, " images"]]:
    number, (features, labels) = item
    what = f"pool shard {number}"
    array = checked_features(features, what)
    return array, check_labels(labels, len(array), f"{what}: labels")


def _class_sums(item: PoolItem, normalize: bool) -> ClassSums:
    features, labels = _pool_batch(item)
    return ClassSums().update(unit_rows(features) if normalize else features, labels)


def checked_features(features: ArrayLike, what: str) -> Float[Array, "images dim"]:
    """Features, images x dim, without rows of zeros, which have no cosine."""
    array: Array = check_features(features, what, min_images=0)
    check_directions(array, what)
    return array
