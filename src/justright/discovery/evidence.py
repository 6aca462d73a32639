"""Evidence for the category of each image, and the confidence computed from it.

The evidence comes from neighbors, from other clusterings of the same images, and from the cluster itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit

from justright.utils.types import Array

MEMBERS = ("method", "tuned", "frozen")  # clusterings of the same images: by the method, of features after, before it
OF_MEMBER = ("overlap", "repeated", "agreeing")
NAMES = (
    "alike",
    "vote",
    *(f"{what} {who}" for who in MEMBERS for what in OF_MEMBER),
    "inner",
    "outer",
    "large",
    "is_new",
    "below",
    "k_width",
    "hidden",
    "untrained",
)
"""Columns of evidence for the category a of an image.

alike: the weighted share of its nearest neighbors that are in a.
vote: the share of the votes for a, over clusterings of z and of random halves of its coordinates.
overlap: |a and b| / |a or b| for the cluster b of the image in another clustering.
repeated: the largest such overlap that a has with any cluster of it.
agreeing: whether the cluster of the image in it is the one that a overlaps with most.
inner, outer: how near a is to being two clusters, or one with another, as `WardClusters` has them; the root of inner,
    the logarithm of outer.
large: how many times as large a is as the mean category, as a logarithm; 0 if it is smaller.
is_new: whether a is a discovered cluster.
below: log(K_estimated / K) if K was given and is smaller than the estimate; otherwise 0.
k_width: log(high / low) of the 90 % interval of the estimate of K, at most `MOST_WIDTH`.
hidden: `hidden_class_shift`, 0 without enough known classes.
untrained: whether nothing was trained. Features after training are then those before it, so that the columns of
    "tuned" are 0.
"""
OF_PROBLEM = {"n_known": int, "below": float, "k_width": float, "hidden": float, "is_trained": bool}
"""The same for all images of a problem: fields of `CategoryShapes`, and their types in model.json."""
USUAL_WIDTH, MOST_WIDTH = 0.7, 1.2  # the mean, used if K was not estimated; the largest in the fit
MOST_OUTER = 5.0  # larger values make no difference


@dataclass(frozen=True, eq=False)
class Member:
    """Another clustering: how its clusters overlap with the categories."""

    overlap: Float[Array, "categories clusters"]

    @staticmethod
    def of(
        category: Int[Array, " images"], cluster: Int[Array, " images"], n_categories: int, n_clusters: int
    ) -> Member:
        """|a and b| / |a or b| for every category a and cluster b."""
        shared = np.zeros((n_categories, n_clusters))
        np.add.at(shared, (category, cluster), 1)
        either = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared
        return Member((shared / np.maximum(either, 1)).astype(np.float32))

    def columns(
        self, category: Int[Array, " images"], cluster: Int[Array, " images"]
    ) -> tuple[Float[Array, " images"], Float[Array, " images"], Float[Array, " images"]]:
        """overlap, repeated and agreeing of each image, for this clustering alone."""
        best = self.overlap.argmax(axis=1)[category]
        return self.overlap[category, cluster], self.overlap.max(axis=1)[category], (best == cluster).astype(np.float32)


@dataclass(frozen=True, eq=False)
class CategoryShapes:
    """Shape of the categories as clusters, and properties of the whole problem."""

    inner: Float[Array, " categories"]
    outer: Float[Array, " categories"]
    size: Int[Array, " categories"]  # images of the target
    n_known: int
    below: float = 0.0
    k_width: float = USUAL_WIDTH
    hidden: float = 0.0
    is_trained: bool = True

    def columns(self, category: Int[Array, " images"]) -> list[Float[Array, " images"]]:
        """All columns of `NAMES` from inner on, of each image."""
        of_category = [
            np.sqrt(self.inner),
            np.log(np.clip(self.outer, 1 / MOST_OUTER, MOST_OUTER)),
            np.maximum(np.log((self.size + 1) / (self.size.mean() + 1)), 0),
            np.arange(len(self.size)) >= self.n_known,
        ]
        of_problem = [self.below, min(self.k_width, MOST_WIDTH), self.hidden, not self.is_trained]
        columns = [column[category].astype(np.float32) for column in of_category]
        return columns + [np.full(len(category), value, dtype=np.float32) for value in of_problem]


def evidence(
    category: Int[Array, " images"],
    alike: Float[Array, " images"],
    vote: Float[Array, " images"],
    members: Sequence[Sequence[tuple[Member, Int[Array, " images"]]]],
    clusters: CategoryShapes,
) -> Float[Array, "images columns"]:
    """The columns of `NAMES`.

    members: for each of `MEMBERS` one or more clusterings with the cluster of every image; their mean is used.
    """
    of_members = [np.mean([one.columns(category, cluster) for one, cluster in each], axis=0) for each in members]
    if not clusters.is_trained:
        of_members[MEMBERS.index("tuned")] = np.zeros_like(of_members[0])
    return np.stack([alike, vote, *np.concatenate(of_members), *clusters.columns(category)], axis=1).astype(np.float32)


INTERCEPT = -0.669
COEFFICIENTS = {
    "alike": 2.668,
    "vote": 2.587,
    "overlap method": 0.373,
    "repeated method": -0.381,
    "agreeing method": -0.237,
    "overlap tuned": 0.578,
    "repeated tuned": -0.201,
    "agreeing tuned": 0.067,
    "overlap frozen": -0.054,
    "repeated frozen": 0.564,
    "agreeing frozen": 0.693,
    "inner": -1.111,
    "outer": -0.589,
    "large": -2.744,
    "is_new": 0.211,
    "below": -0.977,
    "k_width": -0.985,
    "hidden": 1.072,
    "untrained": 0.411,
}
# Standard deviation over problems of mean confidence minus accuracy: an error that all images of a problem share.
COMMON_ERROR = 0.065
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


def expected_right(confidence: Float[Array, " images"]) -> ExpectedRight:
    """The sum of confidences, and an interval about it.

        sum_i p_i +- z sqrt(sum_i p_i (1 - p_i) + (s n)^2)

    s is the `COMMON_ERROR`, which does not shrink with the number of images.
    """
    p, n = confidence.astype(np.float64), len(confidence)
    total = p.sum()
    spread = math.sqrt(float(np.sum(p * (1 - p))) + (COMMON_ERROR * n) ** 2)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * spread
    return ExpectedRight(
        n, expected=round(total), low=max(0, math.floor(total - half)), high=min(n, math.ceil(total + half))
    )
