"""Principal directions with partly equalized variances, in which k-means is better on features of conv nets."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from justright.utils.parallel import blas_threads
from justright.utils.types import Array

BLOCK_ROWS = 4096


def principal_directions(
    features: Float[Array, "images dim"], n: int, power: float = 0.5
) -> tuple[Float[Array, " dim"], Float[Array, "dim kept"]]:
    """The mean m of features h, and P = [p_1 / s_1^power, ..., p_n / s_n^power] for z = (h - m) P.

    p_j are the n principal directions, s_j the standard deviation along them. The root of s_j (power 1/2)
    equalizes the directions by half, s_j itself (power 1) whitens them. Fewer than n are kept if features have fewer.
    """
    center = features.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((len(center), len(center)))
    with blas_threads(1):  # the result does not depend on the number of threads
        for at in range(0, len(features), BLOCK_ROWS):
            centered = features[at : at + BLOCK_ROWS] - center
            covariance += centered.T @ centered / len(features)
        variance, vectors = np.linalg.eigh(covariance)  # in ascending order
    kept = np.argsort(variance)[::-1][:n]
    kept = kept[variance[kept] > variance.max(initial=0.0) * np.finfo(np.float32).eps]
    directions = vectors[:, kept] / variance[kept] ** (power / 2)
    return center.astype(np.float32), directions.astype(np.float32)


def in_directions(
    features: Float[Array, "images dim"], center: Float[Array, " dim"], directions: Float[Array, "dim kept"]
) -> Float[Array, "images kept"]:
    """z = (h - m) P, with a result that does not depend on the number of threads."""
    with blas_threads(1):
        return (features - center) @ directions
