"""Clusters by mean shift and Ward's tree, named by the labeled images among them: how CMS ends."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from justright.clustering.arrays import sum_by_group
from justright.clustering.lloyd import nearest_two
from justright.clustering.ward import cut_tree, mean_shifted, ward_merges
from justright.discovery.assigner import CategoryAssigner, Learned
from justright.discovery.training_data import TrainingData
from justright.geometry import unit_rows
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.types import Array

_log = logging.getLogger(__name__)

MAX_SHIFTS = 20
PATIENCE = 2  # shifts that may pass without a gain
PATIENCE_OF_K = 50  # cuts of the tree that may pass without a gain


class NumberedClusters(NamedTuple):
    """The category of each image, known classes first, and for how many of the labeled ones it is their class."""

    category: Int[Array, " images"]
    accuracy: float


def by_shifted_clusters(
    data: TrainingData,
    features: Float[Array, "images dim"],
    clustered: Float[Array, "images out"],
    n_categories: int | None,
    config: Any,
    seed: int,
) -> Learned:
    """Mean shift of the rows to be clustered, as long as Ward's clusters agree better and better with labeled images.

    Without `n_categories` there are as many as agree best. Other images than these are known by their feature alone:
    they belong to the nearest centroid of features.
    """
    rows = data.seen
    clustering = ShiftedClusters(data.labels[data.labeled], len(data.known), config.n_ward, seed)
    x = unit_rows(clustered[rows])
    k = clustering.best_k(x) if n_categories is None else n_categories
    found = clustering.best(x, k, config.n_neighbors, config.shift)
    unit = unit_rows(features[rows])
    assigner = CategoryAssigner.of_centroids(_centroids(unit, found.category, k))
    return Learned(features, assigner, data.of_target(found.category[len(data.labeled) :]))


@dataclass(frozen=True, eq=False)
class ShiftedClusters:
    """Clusters of unit rows, the labeled ones first."""

    labels: Int[Array, " labeled"]  # of the labeled rows, from 0
    n_known: int  # how many classes they have
    n_ward: int  # how many rows the tree is made of at most; the others join the nearest centroid
    seed: int  # draws these

    def best(self, x: Float[Array, "images dim"], k: int, n_neighbors: int, share: float) -> NumberedClusters:
        """K clusters after as many shifts as labeled images agree with best; the latest among equals.

        Ends when the agreement has not risen for two shifts, or after twenty. Without labeled images that is two.
        """
        best, n_idle = self.numbered(_Tree(x, self.n_ward, self.seed), k), 0
        for _ in range(MAX_SHIFTS):
            x = mean_shifted(x, n_neighbors, share)
            now = self.numbered(_Tree(x, self.n_ward, self.seed), k)
            n_idle = 0 if now.accuracy > best.accuracy else n_idle + 1
            best = now if now.accuracy >= best.accuracy else best
            if n_idle == PATIENCE:
                break
        return best

    def best_k(self, x: Float[Array, "images dim"]) -> int:
        """The K of highest agreement with the labeled images, above their classes; among equals the middle one."""
        if not self.n_known:
            raise DegenerateError("no labeled image to find K by", expected="labeled images", advice="categories=given")
        tree = _Tree(x, self.n_ward, self.seed)
        accuracy: list[float] = []
        for k in range(self.n_known + 1, tree.n_rows + 1):
            accuracy.append(self.numbered(tree, k).accuracy)
            if len(accuracy) - int(np.argmax(accuracy)) > PATIENCE_OF_K:
                break
        equals = np.flatnonzero(np.array(accuracy) == max(accuracy))
        return self.n_known + 1 + int(equals[len(equals) // 2])

    def numbered(self, tree: _Tree, k: int) -> NumberedClusters:
        """The tree cut into K clusters, which get the numbers of the classes they share most labeled images with.

        Every class gets a cluster of its own: where none is left that shares images with it, the nearest one.
        """
        cluster, centroids = tree.clusters(k)
        n_labeled = len(self.labels)
        shared = np.zeros((self.n_known, k))
        np.add.at(shared, (self.labels, cluster[:n_labeled]), 1)
        means = _centroids(tree.x[:n_labeled], self.labels, self.n_known)
        nearness = (1 + means @ centroids.T) / (2 * self.n_known + 2)  # below 1 over all classes together
        classes, own = linear_sum_assignment(shared + nearness, maximize=True)
        number = np.full(k, -1)
        number[own] = classes
        number[number < 0] = np.arange(self.n_known, k)
        return NumberedClusters(number[cluster], float(shared[classes, own].sum()) / max(n_labeled, 1))


class _Tree:
    """Ward's tree over all rows, or over `n_most` of them."""

    def __init__(self, x: Float[Array, "images dim"], n_most: int, seed: int):
        self.x, self.rows, self.n_rows = x, np.arange(len(x)), min(len(x), n_most)
        if self.n_rows < len(x):
            _log.warning("Ward's tree is made of %d of %d images; the others join the nearest cluster", n_most, len(x))
            self.rows = np.sort(generator(seed, "ward").permutation(len(x))[:n_most])
        self.merges = ward_merges(x[self.rows])

    def clusters(self, k: int) -> tuple[Int[Array, " images"], Float[Array, "k dim"]]:
        """The cluster of each image, and the centroids."""
        if k > self.n_rows:
            raise DegenerateError(f"{k} categories for {self.n_rows} images", expected="fewer categories than images")
        part = cut_tree(self.merges, k)
        centroids = _centroids(self.x[self.rows], part, k)
        cluster = part if self.n_rows == len(self.x) else nearest_two(self.x, centroids)[0]
        cluster[self.rows] = part
        return cluster, centroids


def _centroids(
    x: Float[Array, "images dim"], group: Int[Array, " images"], n_groups: int
) -> Float[Array, "{n_groups} dim"]:
    count = np.maximum(np.bincount(group, minlength=n_groups), 1)
    return (sum_by_group(x, group, n_groups) / count[:, None]).astype(x.dtype)
