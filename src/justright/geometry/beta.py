"""The beta density, and maps of cosines to its domain [0, 1]."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from justright.utils.errors import DegenerateError
from justright.utils.types import Array

DOMAINS = ("clip", "affine", "minmax", "rank", "target", "raw")


def beta_density(x: Float[Array, " n"], alpha: float, beta: float) -> Float[Array, " n"]:
    """The density of the beta distribution. Eq. 11.

    b(x; alpha, beta) = x^(alpha - 1) (1 - x)^(beta - 1) / B(alpha, beta)   for 0 <= x <= 1,   and 0 outside.
    """
    from scipy.special import betaln, xlog1py, xlogy  # slow to import

    is_inside = (x >= 0) & (x <= 1)
    inside = np.where(is_inside, x, 0.5)
    log_density = xlogy(alpha - 1, inside) + xlog1py(beta - 1, -inside) - betaln(alpha, beta)
    return np.where(is_inside, np.exp(log_density), 0.0)


def to_unit_interval(
    similarity: Float[Array, " n"], domain: str = "clip", reference: float = math.nan
) -> Float[Array, " n"]:
    """Map cosines in [-1, 1] to [0, 1], the domain of the beta density.

    clip    max(s, 0): more than a right angle apart counts as 0
    affine  (s + 1) / 2
    minmax  (s - min) / (max - min) over all classes
    rank    (rank - 1/2) / n over all classes, ties sharing their mean rank: shape without scale
    target  s / (2 r), at most 1: a class as similar to the target as the target's own clusters are, s = r, is at 1/2
    raw     s itself: negatives stay outside the domain, where the density is 0
    """
    if domain == "clip":
        return np.clip(similarity, 0.0, 1.0)
    if domain == "affine":
        return (similarity + 1.0) / 2.0
    if domain == "target":
        if not reference > 0:
            raise DegenerateError(
                f"clusters of the target have a similarity of {reference:g} to it",
                expected="more than 0 for domain='target'",
                advice="reduction='median', or domain='rank'",
            )
        return np.clip(similarity / (2.0 * reference), 0.0, 1.0)
    if domain == "raw":
        return similarity
    if domain == "minmax":
        low, high = similarity.min(), similarity.max()
        if low == high:
            raise DegenerateError(
                f"all {len(similarity)} similarities are {low:g}",
                expected="different similarities for domain='minmax'",
                advice="domain='clip'",
            )
        return (similarity - low) / (high - low)
    _, position, counts = np.unique(similarity, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2.0
    return (mean_rank[position] - 0.5) / len(similarity)
