"""Validation of arrays that users pass, on scikit-learn's `check_array`. Torch tensors become numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from justright.utils.errors import DataError, DegenerateError
from justright.utils.types import UNLABELED, Array
from justright.utils.wording import first_names

FLOATS = [np.float64, np.float32, np.float16]  # kept as they are; other numbers become the first
N_EXAMPLES = 5


def to_numpy(values: Any) -> Array:
    """Convert to a numpy array, without a copy where possible. Works for tensors of any device, without torch."""
    if hasattr(values, "detach"):  # numpy cannot read tensors that record gradients, and has no bfloat16
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
    return np.asarray(values)


def check_features(features: Any, what: str = "features", *, min_images: int = 1) -> Any:
    """Return features as a table of finite floating point numbers, images x dim; half precision stays half."""
    from sklearn.utils import check_array  # takes a second to import

    array = to_numpy(features)
    try:
        table: Array = check_array(array, dtype=FLOATS, ensure_all_finite=False, ensure_min_samples=min_images)
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{what} of shape {array.shape}: {reason}", expected="numbers, images x dimensions") from error
    # One sum is faster than a mask of all numbers. It is not finite if any number is not, or if numbers overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = bool(np.isfinite(table.sum(dtype=np.float64)))
    if not is_finite:
        is_bad = ~np.isfinite(table).all(axis=1)
        problem = f"NaN or infinite values in {_rows(is_bad)}" if is_bad.any() else "numbers whose sum overflows"
        raise DegenerateError(
            f"{what}: {problem}",
            expected="finite numbers",
            advice="extract these features again, in float32, or leave these images out",
        )
    return table


def check_directions(features: Any, what: str = "features") -> None:
    """Raise if a row has only zeros: it has no cosine."""
    is_zero = ~features.any(axis=1)
    if is_zero.any():
        raise DegenerateError(
            f"{what}: only zeros in {_rows(to_numpy(is_zero))}",
            expected="features with a direction; a zero vector has no cosine",
            advice="look at these images: features of all zeros come from blank input or a broken extraction",
        )


def check_labels(
    labels: Any, n_images: int | None = None, what: str = "labels", *, allow_unlabeled: bool = False
) -> Int[Array, " images"]:
    """Return labels as int64, one per image; classes start at 0, and -1 is unlabeled where that is allowed."""
    array = to_numpy(labels)
    if array.ndim != 1 or (n_images is not None and len(array) != n_images):
        n_expected = "" if n_images is None else f" for {n_images} images"
        raise DataError(f"{what} of shape {array.shape}{n_expected}", expected="one label per image")
    if not np.issubdtype(array.dtype, np.integer):
        raise DataError(f"{what} of type {array.dtype}", expected="integers, one for each class")
    least = UNLABELED if allow_unlabeled else 0
    if len(array) and array.min() < least:
        raise DataError(
            f"{what}: {int((array < least).sum())} of {len(array)} images have a label below {least}, e.g. "
            f"{array.min()}",
            expected="classes from 0 on" + (", and -1 for an unlabeled image" if allow_unlabeled else ""),
            advice="" if allow_unlabeled else "leave images without a known class out",
        )
    if len(array) and array.max() > np.iinfo(np.int64).max:
        raise DataError(f"{what}: a label of {array.max()}", expected=f"at most {np.iinfo(np.int64).max}")
    return array.astype(np.int64, copy=False)


def check_categories(values: Any, n_images: int | None = None, what: str = "labels") -> Int[Array, " images"]:
    """Return classes or clusters as int64, one per image; names are numbered in alphabetical order."""
    array = to_numpy(values)
    if array.ndim == 1 and len(array) and all(isinstance(each, str) for each in array):
        array = np.unique(array.astype(str), return_inverse=True)[1]
    return check_labels(array, n_images, what)


def check_level(level: float) -> float:
    """Return the level of an interval, a share between 0 and 1."""
    if not 0 < level < 1:
        raise DataError(f"an interval of level {level}", expected="a number between 0 and 1, such as 0.9")
    return level


def _rows(is_bad: Array) -> str:
    """Count rows and name the first of them."""
    rows = np.flatnonzero(is_bad)
    word = "row" if len(rows) == 1 else "rows"
    return f"{len(rows)} of {len(is_bad)} rows ({word} {first_names(rows.astype(str).tolist(), N_EXAMPLES)})"
