"""Rows of features: chunks that fit the cache, norms, unit length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.utils.types import Array

CHUNK_ROWS = 8192
"""Rows handled at once, so that memory does not grow with the number of images."""


def row_chunks(
    features: Float[Array, "images dim"], chunk_rows: int = CHUNK_ROWS
) -> Iterator[Float[Array, "chunk dim"]]:
    """The rows of features in order, at most `chunk_rows` at a time, in single or double precision.

    Half precision, as feature stores keep it, is widened one chunk at a time.
    """
    wide = np.float64 if features.dtype == np.float64 else np.float32
    for start in range(0, len(features), chunk_rows):
        yield features[start : start + chunk_rows].astype(wide, copy=False)


def evenly_spaced(n_rows: int, most: int) -> Int[Array, " places"]:
    """At most `most` row numbers, evenly spaced from the first row to the last."""
    return np.unique(np.linspace(0, n_rows - 1, most if n_rows else 0).astype(np.int64))


def row_norms(features: Float[Array, "images dim"]) -> Float[Array, " images"]:
    """The Euclidean norm of each row."""
    norms = [np.sqrt(np.einsum("id,id->i", rows, rows)) for rows in row_chunks(features)]
    return np.concatenate(norms) if norms else np.zeros(0)


def unit_rows(features: Float[Any, "images dim"]) -> Float[Any, "images dim"]:
    """Scale each row of an array or tensor to length 1, in at least single precision; a row of zeros stays."""
    xp = array_namespace(features)
    wide = features if features.dtype in (xp.float32, xp.float64) else xp.astype(features, xp.float32)
    length = xp.linalg.vector_norm(wide, axis=1, keepdims=True)
    return wide / xp.where(length > 0, length, xp.ones_like(length))
