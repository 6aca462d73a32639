"""What comes in, checked once: arrays or shards of arrays, from numpy, torch or a memory-mapped file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DataError, DegenerateError
from justright.geometry import ClassSums, check_rows, unit_rows
from justright.types import Array


@runtime_checkable
class ArrayLike(Protocol):
    """Anything that numpy can read as an array: a numpy array, a memory map, a torch tensor."""

    def __array__(self, *args: Any, **kwargs: Any) -> Array: ...


PoolShards: TypeAlias = Iterable[tuple[ArrayLike, ArrayLike]]
"""Features and labels of the pool, shard by shard."""

TargetShards: TypeAlias = Iterable[ArrayLike]
"""Features of the target, shard by shard."""


def as_features(features: ArrayLike, what: str) -> Float[Array, "images dim"]:
    """Features as a 2-d float array, finite and nowhere all zero. Half precision stays half."""
    array = as_numpy(features)
    if array.ndim != 2:
        raise DataError(f"{what}: an array of shape {array.shape}", expected="images x dimensions")
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    check_rows(array, what)
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
    return array.astype(np.int64, copy=False)


def pool_batches(
    shards: PoolShards, normalize: bool = False
) -> Iterator[tuple[Float[Array, "images dim"], Int[Array, " images"]]]:
    """The shards of the pool, each checked, with rows of length 1 if `normalize`."""
    for number, (features, labels) in enumerate(shards):
        what = f"pool shard {number}"
        array = as_features(features, what)
        yield (unit_rows(array, what) if normalize else array), as_labels(labels, len(array), what)


def target_batches(shards: TargetShards, dim: int, normalize: bool = False) -> Iterator[Float[Array, "images dim"]]:
    """The shards of the target, each checked against the pool's `dim`; no image at all is an error."""
    n_images = 0
    for number, features in enumerate(shards):
        what = f"target shard {number}"
        array = as_features(features, what)
        if len(array) and array.shape[1] != dim:
            raise DataError(
                f"{what}: {array.shape[1]} dimensions, while the pool has {dim}",
                expected="pool and target in one space",
                advice="extract both with the same backbone",
            )
        n_images += len(array)
        if len(array):
            yield unit_rows(array, what) if normalize else array
    if n_images == 0:
        raise DegenerateError(
            "the target is empty", expected="at least one target image", advice="look at what the target was read from"
        )


def pool_sums(shards: PoolShards, normalize: bool = False) -> ClassSums:
    """Sum and count of each class of the pool; fewer than two classes is an error."""
    sums = ClassSums()
    for features, labels in pool_batches(shards, normalize):
        sums.update(features, labels)
    check_classes(sums.classes)
    return sums


def check_classes(classes: Int[Array, " classes"]) -> None:
    """There is something to select from."""
    if len(classes) < 2:
        came = "the pool is empty" if len(classes) == 0 else f"the pool has one class only, {classes[0]}"
        raise DegenerateError(came, expected="at least two classes to select from", advice="add labeled data")


def check_repeatable(shards: Iterable[Any], why: str) -> None:
    """Shards that must be read more than once may not come from a generator."""
    if iter(shards) is shards:
        raise DataError(
            f"target shards that can be read only once, while {why}",
            expected="a list, or an object that starts anew each time it is iterated",
        )


def as_numpy(values: Any) -> Array:
    """Values as a numpy array, without a copy where there can be none."""
    # A torch tensor that records gradients or lives on another device must say goodbye first; and numpy knows no
    # bfloat16. All by its own methods, so that torch is never imported here.
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
    return np.asarray(values)
