"""From evidence to the probability that a category is right, and to the number of images that are.

The numbers were fitted on problems whose truth is known (`benchmarks/study_confidence.py`) and judged on others;
docs/discovery.md tells which these are and how far the result was off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from justright.discovery.evidence import NAMES
from justright.utils.types import Array

INTERCEPT = -1.104
COEFFICIENTS = {
    "alike": 2.679,
    "overlap method": -0.061,
    "repeated method": 0.208,
    "agreeing method": 0.061,
    "overlap tuned": 0.088,
    "repeated tuned": 0.267,
    "agreeing tuned": 0.175,
    "overlap frozen": 0.739,
    "repeated frozen": 0.581,
    "agreeing frozen": 0.389,
    "inner": -0.716,
    "outer": 0.576,
    "large": -1.391,
    "is_new": -0.105,
    "below": -0.878,
    "k_width": -1.269,
}
# The spread of the mean confidence about the accuracy over problems, as a share of the images: what all images of a
# problem have in common and no evidence shows.
COMMON_ERROR = 0.065
LEVEL = 0.9  # of the interval
LEAST, MOST = 0.02, 0.99  # no evidence makes it surer than that


def probability_right(evidence: Float[Array, "images columns"]) -> Float[Array, " images"]:
    """1 / (1 + exp(-(b_0 + sum_j b_j e_j))), a logistic regression on the columns of `NAMES`."""
    weight = np.array([COEFFICIENTS[name] for name in NAMES])
    found = expit(INTERCEPT + evidence.astype(np.float64) @ weight)
    return np.clip(found, LEAST, MOST).astype(np.float32)


@dataclass(frozen=True)
class ExpectedRight:
    """How many of n images are right, as far as confidences tell."""

    n: int
    expected: int
    low: int
    high: int
    level: float = LEVEL

    def __str__(self) -> str:
        """Such as "1,060 to 1,140 of 1,785"."""
        low = "" if self.low == self.high else f"{self.low:,} to "
        return f"{low}{self.high:,} of {self.n:,}"

    def in_words(self, images: str = "images") -> str:
        """A sentence; nothing where there are no images."""
        said = f"We expect {self} {images} to be right ({self.level:.0%} interval)."
        return said.replace("%", " %") if self.n else ""


def expected_right(confidence: Float[Array, " images"]) -> ExpectedRight:
    """The sum of confidences, and an interval about it.

        sum_i p_i +- z sqrt(sum_i p_i (1 - p_i) + (s n)^2)

    s is the `COMMON_ERROR`, by which all images of a problem are off together: it does not shrink with their number.
    """
    p, n = confidence.astype(np.float64), len(confidence)
    total, spread = p.sum(), math.sqrt(float(np.sum(p * (1 - p))) + (COMMON_ERROR * n) ** 2)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * spread
    low, high = max(0, math.floor(total - half)), min(n, math.ceil(total + half))
    return ExpectedRight(n, round(total), low, high)
