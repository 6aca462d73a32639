"""Features of pool and target as selectors read them: arrays or shards of arrays, each checked where it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import ClassSums, unit_rows
from justright.utils.errors import DataError, DegenerateError
from justright.utils.file_rows import ArrayLike as ArrayLike
from justright.utils.parallel import Engine, Result, in_process
from justright.utils.types import Array
from justright.utils.validation import check_directions, check_features

PoolItem: TypeAlias = tuple[int, tuple[ArrayLike, ArrayLike]]
TargetItem: TypeAlias = tuple[int, ArrayLike]
"""A shard with its number, which errors name."""


@dataclass(frozen=True)
class PoolFeatures:
    """Features and labels of the pool, shard by shard, and the engine that works on them."""

    shards: Iterable[tuple[ArrayLike, ArrayLike]]
    engine: Engine = in_process

    def batches(self) -> Iterator[tuple[Float[Array, "images dim"], Int[Array, " images"]]]:
        """The shards, one in memory at a time."""
        return map(_pool_batch, enumerate(self.shards))

    def sums(self, normalize: bool = False) -> ClassSums:
        """Sum and count of each class, of rows of length 1 if `normalize`; fewer than two classes are an error."""
        parts = self.engine(partial(_class_sums, normalize=normalize), enumerate(self.shards))
        sums = reduce(ClassSums.merge, parts, ClassSums())
        check_classes(sums.classes)
        return sums

    def classes(self) -> Int[Array, " classes"]:
        """The classes in ascending order; one is enough."""
        found = reduce(np.union1d, self.engine(_classes, enumerate(self.shards)), np.zeros(0, dtype=np.int64))
        if len(found) == 0:
            raise DegenerateError("the pool is empty", expected="at least one labeled image")
        return found


@dataclass(frozen=True)
class TargetFeatures:
    """Features of the target, shard by shard, the engine that works on them, and clusters if they are given."""

    shards: Iterable[ArrayLike]
    engine: Engine = in_process
    clusters: ArrayLike | None = None

    def items(self) -> Iterator[TargetItem]:
        """The shards that hold images, with their numbers; no image at all is an error."""
        is_empty = True
        for number, features in enumerate(self.shards):
            if n_rows(features):
                is_empty = False
                yield number, features
        if is_empty:
            raise DegenerateError(
                "the target is empty",
                expected="at least one target image",
                advice="look at what the target was read from",
            )

    def each(self, work: Callable[[TargetItem], Result]) -> Iterator[Result]:
        """What `work` makes of each shard, in their order; it checks a shard by `target_batch`."""
        return self.engine(work, self.items())

    def batches(self, dim: int, normalize: bool = False) -> Iterator[Float[Array, "images dim"]]:
        """The shards, one in memory at a time; `dim` is that of the pool."""
        return map(partial(target_batch, dim=dim, normalize=normalize), self.items())

    def require_repeatable(self, why: str) -> None:
        """Shards that must be read more than once may not come from a generator."""
        if iter(self.shards) is self.shards:
            raise DataError(
                f"target shards that can be read only once, while {why}",
                expected="a list, or an object that starts anew each time it is iterated",
            )


def target_batch(item: TargetItem, dim: int, normalize: bool = False) -> Float[Array, "images dim"]:
    """One shard of the target, checked against the dimensions of the pool, with rows of length 1 if `normalize`."""
    number, features = item
    what = f"target shard {number}"
    array = as_features(features, what)
    if array.shape[1] != dim:
        raise DataError(
            f"{what}: {array.shape[1]} dimensions, while the pool has {dim}",
            expected="pool and target in one space",
            advice="extract both with the same backbone",
        )
    return unit_rows(array) if normalize else array


def check_classes(classes: Int[Array, " classes"]) -> None:
    """There is something to select from."""
    if len(classes) < 2:
        problem = "the pool is empty" if len(classes) == 0 else f"the pool has one class only, {classes[0]}"
        raise DegenerateError(problem, expected="at least two classes to select from", advice="add labeled data")


def n_rows(shard: ArrayLike) -> int:
    """The number of images of a shard, which is not read for it."""
    shape = np.shape(shard)
    return shape[0] if shape else 0


def as_features(features: ArrayLike, what: str) -> Float[Array, "images dim"]:
    """Features as a 2-d float array, finite and nowhere all zero. Half precision stays half."""
    array: Array = check_features(as_numpy(features), what, min_images=0)
    check_directions(array, what)
    return array


def as_labels(labels: ArrayLike, n_images: int, what: str) -> Int[Array, " images"]:
    """One whole number per image."""
    array = as_numpy(labels)
    if array.shape != (n_images,):
        raise DataError(f"{what}: labels of shape {array.shape} for {n_images} images", expected="one label per image")
    if not np.issubdtype(array.dtype, np.integer):
        raise DataError(f"{what}: labels of type {array.dtype}", expected="whole numbers, one for each class")
    if n_images and array.min() < 0:
        raise DataError(
            f"{what}: {int((array < 0).sum())} images carry the label {array.min()}",
            expected="labels of at least 0",
            advice="leave unlabeled images out of the pool",
        )
    if n_images and array.max() > np.iinfo(np.int64).max:
        raise DataError(f"{what}: a label of {array.max()}", expected=f"labels of at most {np.iinfo(np.int64).max}")
    return array.astype(np.int64, copy=False)


def as_numpy(values: Any) -> Array:
    """Values as a numpy array, without a copy where there can be none."""
    # Numpy reads no torch tensor that records gradients, lives on another device, or is bfloat16. The tensor's own
    # methods mend that, so that torch is never imported here.
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
    return np.asarray(values)


def _pool_batch(item: PoolItem) -> tuple[Float[Array, "images dim"], Int[Array, " images"]]:
    number, (features, labels) = item
    what = f"pool shard {number}"
    array = as_features(features, what)
    return array, as_labels(labels, len(array), what)


def _class_sums(item: PoolItem, normalize: bool) -> ClassSums:
    features, labels = _pool_batch(item)
    return ClassSums().update(unit_rows(features) if normalize else features, labels)


def _classes(item: PoolItem) -> Int[Array, " classes"]:
    return np.unique(_pool_batch(item)[1])
