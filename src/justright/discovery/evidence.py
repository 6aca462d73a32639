"""What speaks for the category of an image: neighbors, other clusterings of the same images, the cluster itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.utils.types import Array

MEMBERS = ("method", "tuned", "frozen")  # clusterings of the same images: by the method, of features after, before it
OF_MEMBER = ("overlap", "repeated", "agreeing")
NAMES = (
    "alike",
    *(f"{what} {who}" for who in MEMBERS for what in OF_MEMBER),
    "inner",
    "outer",
    "large",
    "is_new",
    "below",
    "k_width",
)
"""Columns of evidence for the category a of an image.

alike: the weighted share of its nearest neighbors that are in a.
overlap: |a and b| / |a or b| for the cluster b of the image in another clustering.
repeated: the largest such overlap that a has with any cluster of it.
agreeing: whether the cluster of the image in it is the one that a overlaps with most.
inner, outer: how near a is to being two clusters, or one with another, as `WardClusters` has them; the root of inner,
    the logarithm of outer.
large: how many times as large a is as the mean category, as a logarithm; 0 if it is smaller.
is_new: whether a is a discovered cluster.
below: log(K_estimated / K) if K was given and is smaller than the estimate; otherwise 0.
k_width: log(high / low) of the 90 % interval of the estimate of K, at most `MOST_WIDTH`.
"""
USUAL_WIDTH, MOST_WIDTH = 0.7, 1.2  # the mean where K was not estimated; the widest that was fitted on
MOST_OUTER = 5.0  # beyond this a cluster is simply apart


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
    """What the categories are like as clusters."""

    inner: Float[Array, " categories"]
    outer: Float[Array, " categories"]
    size: Int[Array, " categories"]  # images of the target
    n_known: int
    below: float = 0.0
    k_width: float = USUAL_WIDTH

    def columns(self, category: Int[Array, " images"]) -> list[Float[Array, " images"]]:
        """inner, outer, large, is_new, below and k_width of each image."""
        outer = np.log(np.clip(self.outer, 1 / MOST_OUTER, MOST_OUTER))
        large = np.maximum(np.log((self.size + 1) / (self.size.mean() + 1)), 0)
        is_new = np.arange(len(self.size)) >= self.n_known
        of_problem = np.full((2, len(self.size)), [[self.below], [min(self.k_width, MOST_WIDTH)]])
        columns = (np.sqrt(self.inner), outer, large, is_new, *of_problem)
        return [column[category].astype(np.float32) for column in columns]


def evidence(
    category: Int[Array, " images"],
    alike: Float[Array, " images"],
    members: Sequence[Sequence[tuple[Member, Int[Array, " images"]]]],
    clusters: CategoryShapes,
) -> Float[Array, "images columns"]:
    """The columns of `NAMES`.

    members: the clusterings of each of `MEMBERS`, of which the mean counts, with the cluster of every image in it.
    """
    said = [np.mean([one.columns(category, cluster) for one, cluster in each], axis=0) for each in members]
    return np.stack([alike, *np.concatenate(said), *clusters.columns(category)], axis=1).astype(np.float32)
