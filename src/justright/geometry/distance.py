"""Distances between centroids. Lower is closer."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from justright.geometry.rows import unit_rows
from justright.types import Array


def euclidean_distance(a: Float[Array, "a dim"], b: Float[Array, "b dim"]) -> Float[Array, "a b"]:
    """d_ij = |a_i - b_j|_2, the ground distance of the earth mover and the default of Tab. A7."""
    # Distances ignore where the origin lies; placing it amid the data keeps the expanded square accurate.
    origin = (a.sum(axis=0, dtype=np.float64) + b.sum(axis=0, dtype=np.float64)) / (len(a) + len(b))
    a, b = a - origin, b - origin
    square = np.einsum("id,id->i", a, a)[:, None] + np.einsum("jd,jd->j", b, b) - 2 * (a @ b.T)
    return np.sqrt(np.maximum(square, 0.0))


def cosine_distance(a: Float[Array, "a dim"], b: Float[Array, "b dim"]) -> Float[Array, "a b"]:
    """d_ij = 1 - cos(a_i, b_j)."""
    cosines = unit_rows(a.astype(np.float64), "centroids") @ unit_rows(b.astype(np.float64), "centroids").T
    return np.maximum(1.0 - cosines, 0.0)


DISTANCES = {
    "euclidean": euclidean_distance,
    "cosine": cosine_distance,
    # Tab. A7's third row: features are brought to length 1 before they are averaged, then distances are Euclidean.
    "l2": euclidean_distance,
}
