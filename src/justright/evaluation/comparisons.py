"""Compare two settings over problems: intervals and tests with the problem as the unit, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from justright.evaluation.intervals import spread
from justright.evaluation.scores import LEVEL
from justright.utils.seeding import generator
from justright.utils.types import Array

FEWEST_FOR_BOOTSTRAP = 8  # fewer problems have too few different resamples; Student's t is used for them
N_RESAMPLES = 9_999


@dataclass(frozen=True, eq=False)
class ProblemDifferences:
    """Paired differences, one for each problem, which is a target with one split of its classes.

    Seeds of training repeat a problem, so their mean is one value here. The statistic of every test and interval is
    T = (mean - m) / (s / sqrt n); its distribution is Student's t, or with at least eight problems that of T in
    resamples of the problems (studentized bootstrap).
    """

    values: Float[Array, " problems"]  # at least two

    @property
    def mean(self) -> float:
        """The mean over problems."""
        return float(self.values.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean, s / sqrt n."""
        return spread(self.values) / math.sqrt(len(self.values))

    @cached_property
    def _resampled(self) -> Float[Array, " resamples"] | None:
        """T of each resample in ascending order; None with few problems."""
        n = len(self.values)
        if n < FEWEST_FOR_BOOTSTRAP:
            return None
        drawn = self.values[generator(0, "resampled problems").integers(n, size=(N_RESAMPLES, n))]
        error = drawn.std(axis=1, ddof=1) / math.sqrt(n)
        is_usable = error > 0  # a resample of equal values has no T
        return np.sort((drawn.mean(axis=1)[is_usable] - self.mean) / error[is_usable])

    def interval(self) -> tuple[float, float]:
        """The ends of the interval of the mean."""
        if self.error == 0:
            return self.mean, self.mean
        tail = (1 - LEVEL) / 2
        if self._resampled is not None:
            low, high = np.quantile(self._resampled, [tail, 1 - tail])
        else:
            from scipy.special import stdtrit  # slow to import

            high = float(stdtrit(len(self.values) - 1, 1 - tail))
            low = -high
        return self.mean - float(high) * self.error, self.mean - float(low) * self.error

    def p_above(self, null: float = 0.0) -> float:
        """The one-sided p-value of the hypothesis that the mean is at most `null`."""
        return self._tail(self.mean - null)

    def p_below(self, null: float = 0.0) -> float:
        """The one-sided p-value of the hypothesis that the mean is at least `null`."""
        return self._tail(null - self.mean, is_lower=True)

    def p_equivalence(self, margin: float) -> float:
        """The p-value of the hypothesis that the mean is at least `margin` away from 0: two one-sided tests."""
        return max(self.p_above(-margin), self.p_below(margin))

    def _tail(self, distance: float, is_lower: bool = False) -> float:
        """The chance of a T at least this far out, in units of the standard error, on one side."""
        if self.error == 0:
            return 0.0 if distance > 0 else 1.0
        t = distance / self.error
        if self._resampled is None:
            from scipy.special import stdtr

            return float(stdtr(len(self.values) - 1, -t))
        n = len(self._resampled)
        n_beyond = (
            np.searchsorted(self._resampled, -t, "right") if is_lower else n - np.searchsorted(self._resampled, t)
        )
        return float((n_beyond + 1) / (n + 1))  # never 0: another resample could be beyond


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for the number of tests (Holm, Scandinavian Journal of Statistics 6, 1979).

    The k-th smallest of m is multiplied by m - k + 1, is at least its predecessor and at most 1.
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(np.argsort(p_values, kind="stable").tolist()):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected
