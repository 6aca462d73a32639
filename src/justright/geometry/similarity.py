"""Cosines between centroids and images, and their minimum, maximum or quantile per centroid."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from justright.geometry.rows import CHUNK_ROWS, row_chunks, row_norms, unit_rows
from justright.utils.types import Array

MAX_CHUNK_COSINES = 8_192_000  # 33 MB in single precision: large enough for a fast product, however many classes


def cosine_similarity(
    centroids: Float[Array, "classes dim"], features: Float[Array, "images dim"]
) -> Float[Array, "classes images"]:
    """cos(h_c, f(x)) = h_c . f(x) / (|h_c| |f(x)|), for every pair: classes x images numbers."""
    return np.concatenate(list(cosine_chunks(centroids, features)), axis=1)


def farthest_similarity(
    centroids: Float[Array, "classes dim"], target: Float[Array, "target dim"]
) -> Float[Array, " classes"]:
    """The cosine of each centroid to the target image farthest from it. Eq. 12.

    gamma_c = min_{x in D^u} cos(h_c, f(x))
    """
    minima = np.min([chunk.min(axis=1) for chunk in cosine_chunks(centroids, target)], axis=0)
    return np.clip(minima.astype(np.float64), -1.0, 1.0)


def nearest_similarity(
    centroids: Float[Array, "classes dim"], target: Float[Array, "target dim"]
) -> Float[Array, " classes"]:
    """The cosine of each centroid to the target image nearest to it ("max" of Tab. A3)."""
    maxima = np.max([chunk.max(axis=1) for chunk in cosine_chunks(centroids, target)], axis=0)
    return np.clip(maxima.astype(np.float64), -1.0, 1.0)


def row_quantiles(rows: Float[Array, "rows columns"], quantile: float) -> Float[Array, " rows"]:
    """The empirical quantile of each row; 0.5 is the "median" of Tab. A3.

    The smallest value with at least a share q of the row at or below it; where a value meets the share exactly, its
    mean with the next one. So q = 0.5 is the usual median, and repeating every column changes nothing, unlike with
    interpolation between order statistics. As numpy's method "averaged_inverted_cdf", but faster.
    """
    share = quantile * rows.shape[1]
    low, high = max(math.ceil(share) - 1, 0), min(math.floor(share), rows.shape[1] - 1)
    parted = np.partition(rows, high, axis=1)  # at one place only: numpy vectorizes that
    upper = parted[:, high].astype(np.float64)
    return upper if low == high else (parted[:, :high].max(axis=1) + upper) / 2


def cosine_chunks(
    centroids: Float[Array, "classes dim"], features: Float[Array, "images dim"]
) -> Iterator[Float[Array, "classes chunk"]]:
    """The columns of `cosine_similarity`, some thousands at a time, in the precision of the features."""
    unit = unit_rows(centroids)
    for rows in row_chunks(features, min(CHUNK_ROWS, max(1, MAX_CHUNK_COSINES // len(unit)))):
        cosines = unit.astype(rows.dtype, copy=False) @ rows.T
        # Dividing the product in place avoids a normalized copy of the features.
        cosines /= row_norms(rows)
        yield cosines
