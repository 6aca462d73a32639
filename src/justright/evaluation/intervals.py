"""Intervals of means and shares that were estimated from a sample."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from justright.evaluation.scores import LEVEL
from justright.utils.types import Array


def spread(values: Sequence[float] | Float[Array, " values"]) -> float:
    """The standard deviation of a sample; NaN from fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


@dataclass(frozen=True)
class MeanDifference:
    """The mean of paired differences of accuracies, and the ends of its interval; as text in points."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def mean_difference(values: Float[Array, " pairs"], overlap: float = 0.0) -> MeanDifference:
    """Mean and Student's t interval of at least two differences.

    mean +- t s sqrt(1 / n + overlap)

    overlap: for values from draws that share data, the share held out over the share learned from, which widens the
    interval (corrected resampled t, Nadeau and Bengio, 2003).
    """
    from scipy.special import stdtrit  # slow to import

    n, mean = len(values), float(values.mean())
    t = float(stdtrit(n - 1, (1 + LEVEL) / 2))
    half = t * spread(values) * math.sqrt(1 / n + overlap)
    return MeanDifference(mean, mean - half, mean + half)


def wilson(accuracy: float, n: int | float, level: float) -> tuple[float, float]:
    """The interval of a share of n images, with a width even at 0 and 1 (Wilson, JASA 22, 1927).

    (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), z the normal quantile.
    """
    from scipy.special import ndtri  # slow to import

    per_image = float(ndtri((1 + level) / 2)) ** 2 / n
    middle = (accuracy + per_image / 2) / (1 + per_image)
    half = math.sqrt(accuracy * (1 - accuracy) * per_image + per_image**2 / 4) / (1 + per_image)
    return max(min(middle - half, accuracy), 0.0), min(max(middle + half, accuracy), 1.0)  # against rounding


def clopper_pearson(accuracy: float, n: float, level: float) -> tuple[float, float]:
    """The interval of a share of n checks; n may be fractional (Clopper and Pearson, Biometrika 26, 1934).

    From the tail-quantile of Beta(x, n - x + 1) to the (1 - tail)-quantile of Beta(x + 1, n - x), x = n accuracy.
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    right, wrong = accuracy * n, (1 - accuracy) * n
    low = float(betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return low, high


def exact_interval(n_right: int, n_checked: int, n_images: int, level: float) -> tuple[float, float]:
    """The interval of the share of right images in a finite set, from n_right of n_checked.

    Low is the smallest count R of right images with P(X >= n_right | R) > tail, high the largest with
    P(X <= n_right | R) > tail; X is hypergeometric.
    """
    from scipy.stats import hypergeom  # slow to import

    tail = (1 - level) / 2
    # counts that the checked images allow; the last one, or the first, needs no test
    least, most = n_right, n_images - (n_checked - n_right)
    low = least + bisect_left(
        range(least, most), True, key=lambda total: hypergeom.sf(n_right - 1, n_images, total, n_checked) > tail
    )
    high = least + bisect_left(
        range(least + 1, most + 1), True, key=lambda total: hypergeom.cdf(n_right, n_images, total, n_checked) <= tail
    )
    return low / n_images, high / n_images


def n_more_checks(
    accuracy: float, variance: float, n_checked: int, n_images: int, level: float, half_width: float
) -> int:
    """Number of further checks until the interval is expected to be half_width to either side.

    n checks, each with this variance, count as  a (1 - a) / (variance (1 / n - 1 / N))  plain ones. The result
    is for the smallest n whose interval of Clopper and Pearson at this size is at most 2 half_width long.
    """

    def is_enough(n: int) -> bool:
        unseen = 1 / n - 1 / n_images
        n_effective = accuracy * (1 - accuracy) / (variance * unseen) if 0 < accuracy < 1 else 1 / unseen
        low, high = clopper_pearson(accuracy, n_effective, level)
        return high - low <= 2 * half_width

    first = max(n_checked, 1)
    return first - n_checked + bisect_left(range(first, n_images), True, key=is_enough)
