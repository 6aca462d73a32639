"""Intervals for a share of which only a sample was seen."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import betaincinv, betaln

from justright.types import Array


def clopper_pearson(accuracy: float, n: float, level: float) -> tuple[float, float]:
    """The interval around a share of n looks, n not necessarily whole (Clopper and Pearson, Biometrika 26, 1934).

    From the tail-quantile of Beta(x, n - x + 1) to the (1 - tail)-quantile of Beta(x + 1, n - x), x = n accuracy.
    """
    tail = (1 - level) / 2
    right, wrong = accuracy * n, (1 - accuracy) * n
    low = float(betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return low, high


def exact_interval(n_right: int, n_checked: int, n_images: int, level: float) -> tuple[float, float]:
    """All counts R of right images among n_images under which n_right of n_checked is not too rare, as shares.

    Low is the smallest R with P(X >= n_right | R) > tail, high the largest with P(X <= n_right | R) > tail, X being
    hypergeometric.
    """
    tail = (1 - level) / 2

    def is_too_few(total: int) -> bool:
        return float(_hypergeometric(n_images, total, n_checked)[n_right:].sum()) <= tail

    def is_too_many(total: int) -> bool:
        return float(_hypergeometric(n_images, total, n_checked)[: n_right + 1].sum()) <= tail

    low, high = n_right, n_images - (n_checked - n_right)
    below, above = low, high
    while below < above:
        middle = (below + above) // 2
        below, above = (middle + 1, above) if is_too_few(middle) else (below, middle)
    smallest, below, above = below, low, high
    while below < above:
        middle = (below + above + 1) // 2
        below, above = (below, middle - 1) if is_too_many(middle) else (middle, above)
    return smallest / n_images, below / n_images


def _hypergeometric(n_images: int, n_right: int, n_checked: int) -> Float[Array, " outcomes"]:
    """P(X = x) = C(R, x) C(N - R, n - x) / C(N, n), x = 0 ... n; importing scipy.stats for it would cost a second."""
    x = np.arange(n_checked + 1)
    is_possible = (x <= n_right) & (n_checked - x <= n_images - n_right)
    x = x[is_possible]
    chance = np.zeros(n_checked + 1)
    chance[is_possible] = np.exp(
        _log_choose(n_right, x)
        + _log_choose(n_images - n_right, n_checked - x)
        - _log_choose(n_images, np.array([n_checked]))
    )
    return chance


def _log_choose(n: int, k: Int[Array, " outcomes"]) -> Float[Array, " outcomes"]:
    return -betaln(n - k + 1.0, k + 1.0) - np.log1p(n)


def n_more_to_halve(accuracy: float, n_effective: float, n_checked: int, n_images: int, level: float) -> int:
    """More looks, spread as before, after which the interval should be half as wide."""

    def width(n: int) -> float:
        if n >= n_images:
            return 0.0
        # the variance of a mean over n of N images falls as 1/n - 1/N
        scale = (1 / n_checked - 1 / n_images) / (1 / n - 1 / n_images)
        low, high = clopper_pearson(accuracy, n_effective * scale, level)
        return high - low

    goal = width(n_checked) / 2
    few, enough = n_checked, n_images
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if width(middle) <= goal else (middle, enough)
    return enough - n_checked
