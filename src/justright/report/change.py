"""What one setting changed against another, and whether that is more than noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from justright.report.compared_run import Group

LEVEL = 0.95


@dataclass(frozen=True)
class ScoreChange:
    """What an accuracy gained against the baseline, in points, and how sure that is."""

    group: str
    points: float
    low: float
    high: float
    n_seeds: int
    n_baseline_seeds: int

    @property
    def has_seeds(self) -> bool:
        """Whether training was repeated on both sides, so that its noise is known."""
        return min(self.n_seeds, self.n_baseline_seeds) > 1

    def verdict(self) -> str:
        """An honest word."""
        if self.low <= 0 <= self.high:
            return "within the noise"
        word = "better" if self.points > 0 else "worse"
        return word if self.has_seeds else f"{word} on these images; with one seed it may still be chance"

    def __str__(self) -> str:
        return f"{self.points:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def change(group: Group, baseline: Group, name: str) -> ScoreChange | None:
    """The difference of two means with an interval, in points; None where a side has no such accuracy.

    Its variance is the sum over both sides of s^2 / n over seeds, where there are several, and of the variance by the
    choice of images. Both sides saw the same images, so the last term is on the safe side. The quantile is Student's,
    with degrees of freedom by Satterthwaite: few seeds tell little of s.
    """
    sides = [(side.values(name), side.image_variance(name)) for side in (group, baseline)]
    if not all(values for values, _ in sides):
        return None
    means = [float(np.mean(values)) for values, _ in sides]
    by_seed = [float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else 0.0 for values, _ in sides]
    variance = sum(by_seed) + sum(by_images for _, by_images in sides)
    squares = sum(v**2 / (len(values) - 1) for v, (values, _) in zip(by_seed, sides, strict=True) if len(values) > 1)
    tail = (1 + LEVEL) / 2
    quantile = float(stdtrit(variance**2 / squares, tail)) if squares > 0 else float(ndtri(tail))
    half = quantile * math.sqrt(variance)
    points = means[0] - means[1]
    n_seeds, n_baseline = (len(values) for values, _ in sides)
    return ScoreChange(name, 100 * points, 100 * (points - half), 100 * (points + half), n_seeds, n_baseline)
