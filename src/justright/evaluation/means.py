"""Means over repetitions: how far the values spread, and how sure a mean difference is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from justright.evaluation.scores import LEVEL
from justright.types import Array


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


def mean_difference(values: Float[Array, " pairs"], level: float = LEVEL, overlap: float = 0.0) -> MeanDifference:
    """Mean and Student's t interval of at least two differences.

    mean +- t s sqrt(1 / n + overlap)

    overlap: where the values come from draws that share data, the share that was held back over the share that was
    learned from, which widens the interval (corrected resampled t, Nadeau and Bengio, 2003).
    """
    n, mean = len(values), float(values.mean())
    t = float(stdtrit(n - 1, (1 + level) / 2))
    half = t * spread(values) * math.sqrt(1 / n + overlap)
    return MeanDifference(mean, mean - half, mean + half)
