"""Features row by row, in pieces that fit the cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from justright.utils.errors import DegenerateError
from justright.utils.types import Array

CHUNK_ROWS = 8192
"""Rows handled at once, so that memory does not grow with the number of images."""


def row_chunks(
    features: Float[Array, "images dim"], chunk_rows: int = CHUNK_ROWS
) -> Iterator[Float[Array, "chunk dim"]]:
    """The rows of features in order, at most `chunk_rows` at a time, in single or double precision.

    Half precision, as feature stores keep it, is widened here and only here: a chunk at a time.
    """
    wide = np.float64 if features.dtype == np.float64 else np.float32
    for start in range(0, len(features), chunk_rows):
        yield features[start : start + chunk_rows].astype(wide, copy=False)


def evenly_spaced(n_rows: int, most: int) -> Int[Array, " places"]:
    """Places of at most so many of the rows, from the first to the last, evenly apart."""
    return np.unique(np.linspace(0, n_rows - 1, most if n_rows else 0).astype(np.int64))


def row_norms(features: Float[Array, "images dim"]) -> Float[Array, " images"]:
    """The Euclidean norm of each row."""
    norms = [np.sqrt(np.einsum("id,id->i", rows, rows)) for rows in row_chunks(features)]
    return np.concatenate(norms) if norms else np.zeros(0)


def unit_rows(features: Float[Array, "images dim"], what: str = "features") -> Float[Array, "images dim"]:
    """Each row divided by its norm; a row that has no direction is an error."""
    norms = check_rows(features, what)
    wide = np.result_type(features.dtype, np.float32)
    return np.asarray(features.astype(wide, copy=False) / norms[:, None].astype(wide))


def unit_or_zero_rows(features: Float[Array, "images dim"]) -> Float[Array, "images dim"]:
    """As `unit_rows`, but a row of zeros stays as it is, where `unit_rows` would refuse it."""
    wide = features.astype(np.result_type(features.dtype, np.float32), copy=False)
    # not `row_norms`, whose last bits differ: clusters and confidences of finished runs were computed so
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)


def check_rows(features: Float[Array, "images dim"], what: str) -> Float[Array, " images"]:
    """The norms of rows that are all finite and nonzero; otherwise an error that names the rows."""
    norms = row_norms(features)
    # One pass tells all: a NaN or an infinity anywhere in a row shows in its norm.
    if not np.all(np.isfinite(norms)):
        raise DegenerateError(
            f"{what}: NaN or infinite values in {_named(~np.isfinite(norms))}",
            expected="finite numbers",
            advice="extract these features again, in float32, or leave these images out",
        )
    if not np.all(norms):
        raise DegenerateError(
            f"{what}: only zeros in {_named(norms == 0)}",
            expected="features with a direction; a zero vector has no cosine",
            advice="look at these images: features of all zeros come from blank input or a broken extraction",
        )
    return norms


def _named(is_bad: Array, show: int = 5) -> str:
    rows = np.flatnonzero(is_bad)
    listed = ", ".join(str(row) for row in rows[:show]) + (", ..." if len(rows) > show else "")
    return f"{len(rows)} of {len(is_bad)} rows ({'row' if len(rows) == 1 else 'rows'} {listed})"
