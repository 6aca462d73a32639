"""Evidence for the category of each image, and the confidence computed from it.

The evidence comes from neighbors, from votes of clusterings, and from the category itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit

from justright.utils.types import Array

NAMES = ("alike", "vote", "repeated", "large", "below", "hidden", "unchecked")
"""Columns of evidence for the category a of an image.

alike: the weighted share of its nearest neighbors that are in a.
vote: the share of the votes for a, over clusterings of z and of random halves of its coordinates.
repeated: the largest overlap |a and b| / |a or b| that a has with a cluster b of the features before training.
large: how many times as large a is as the mean category, as a logarithm; 0 if it is smaller.
below: log(K_estimated / K) if K was given and is smaller than the estimate; otherwise 0.
hidden: `hidden_class_shift`; 0 without enough known classes.
unchecked: whether there were too few of them, so that nothing shows how well new categories are found.
"""


@dataclass(frozen=True, eq=False)
class CategoryShapes:
    """The evidence that all images of a category, or of a problem, share."""

    size: Int[Array, " categories"]  # images of the target
    repeated: Float[Array, " categories"]
    below: float = 0.0
    hidden: float | None = None  # None without enough known classes

    @property
    def is_checked(self) -> bool:
        """Whether hidden known classes show how well new categories are found."""
        return self.hidden is not None

    def columns(self, category: Int[Array, " images"]) -> list[Float[Array, " images"]]:
        """The columns of `NAMES` from repeated on, of each image."""
        large = np.maximum(np.log((self.size + 1) / (self.size.mean() + 1)), 0)
        values = self.below, self.hidden or 0.0, float(not self.is_checked)
        of_problem = [np.full(len(category), value) for value in values]
        return [self.repeated[category], large[category], *of_problem]


def largest_overlap(
    category: Int[Array, " images"], cluster: Int[Array, " images"], n_categories: int
) -> Float[Array, " categories"]:
    """max_b |a and b| / |a or b| of every category a, over the clusters b of another clustering; 0 without images."""
    shared = np.zeros((n_categories, int(cluster.max(initial=0)) + 1))
    np.add.at(shared, (category, cluster), 1)
    either = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared
    return (shared / np.maximum(either, 1)).max(axis=1).astype(np.float32)


def evidence(
    category: Int[Array, " images"],
    alike: Float[Array, " images"],
    vote: Float[Array, " images"],
    shapes: CategoryShapes,
) -> Float[Array, "images columns"]:
    """The columns of `NAMES`."""
    return np.stack([alike, vote, *shapes.columns(category)], axis=1).astype(np.float32)


INTERCEPT = -2.659
COEFFICIENTS = {
    "alike": 2.175,
    "vote": 3.090,
    "repeated": 1.156,
    "large": -1.898,
    "below": -1.142,
    "hidden": 0.683,
    "unchecked": -0.365,
}
# Standard deviation over problems of mean confidence minus accuracy: an error that all images of a problem share.
COMMON_ERROR, UNCHECKED_ERROR = 0.055, 0.12  # the second without enough known classes to hide
LEVEL = 0.9  # of the interval
LEAST, MOST = 0.02, 0.99  # limits of the confidence


def probability_right(evidence: Float[Array, "images columns"]) -> Float[Array, " images"]:
    """1 / (1 + exp(-(b_0 + sum_j b_j e_j))), a logistic regression on the columns of `NAMES`."""
    weight = np.array([COEFFICIENTS[name] for name in NAMES])
    probability = expit(INTERCEPT + evidence.astype(np.float64) @ weight)
    return np.clip(probability, LEAST, MOST).astype(np.float32)


@dataclass(frozen=True)
class ExpectedRight:
    """How many of n images are expected to be right, with an interval."""

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
        """A sentence; empty without images."""
        sentence = f"We expect {self} {images} to be right ({self.level:.0%} interval)."
        return sentence.replace("%", " %") if self.n else ""


def expected_right(confidence: Float[Array, " images"], is_checked: bool = True) -> ExpectedRight:
    """The sum of confidences, and an interval about it.

        sum_i p_i +- z sqrt(sum_i p_i (1 - p_i) + (s n)^2)

    s is the `COMMON_ERROR`, or the `UNCHECKED_ERROR`; it does not shrink with the number of images.

    is_checked: see `CategoryShapes`.
    """
    p, n = confidence.astype(np.float64), len(confidence)
    total = p.sum()
    common = COMMON_ERROR if is_checked else UNCHECKED_ERROR
    spread = math.sqrt(float(np.sum(p * (1 - p))) + (common * n) ** 2)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * spread
    return ExpectedRight(
        n, expected=round(total), low=max(0, math.floor(total - half)), high=min(n, math.ceil(total + half))
    )
