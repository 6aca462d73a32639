"""Counts of images by class and cluster, and the best one-to-one map from clusters to classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int, UInt64

from justright.utils.errors import DegenerateError
from justright.utils.types import UNLABELED, Array, Labels
from justright.utils.validation import check_labels


@dataclass(frozen=True, eq=False)
class Counts:
    """Number of images n(k, c) in cluster k and of class c, for pairs with at least one image.

    Pairs are ordered by cluster, then by class.
    """

    cluster: Int[Array, " pairs"]
    class_: Int[Array, " pairs"]
    n: Int[Array, " pairs"]

    @staticmethod
    def of(y_true: Labels, y_pred: Labels) -> Counts:
        """Count images by the class `y_true` and the cluster `y_pred`, any non-negative integers."""
        y_true = check_labels(y_true, what="classes")
        y_pred = check_labels(y_pred, len(y_true), "clusters")
        if not len(y_true):
            raise DegenerateError("no images to evaluate", expected="at least one image with a class and a cluster")
        classes, column = np.unique(y_true, return_inverse=True)
        clusters, row = np.unique(y_pred, return_inverse=True)
        pair, n = np.unique(row * len(classes) + column, return_counts=True)
        row, column = np.divmod(pair, len(classes))
        return Counts(clusters[row], classes[column], n.astype(np.int64))

    @property
    def n_images(self) -> int:
        """Number of all images."""
        return int(self.n.sum())

    @cached_property
    def classes(self) -> Int[Array, " classes"]:
        """The classes that occur, ascending."""
        return np.unique(self.class_)

    @cached_property
    def clusters(self) -> Int[Array, " clusters"]:
        """The clusters that occur, ascending."""
        return np.unique(self.cluster)

    @cached_property
    def column(self) -> Int[Array, " pairs"]:
        """Index of each pair's class in `classes`."""
        return np.searchsorted(self.classes, self.class_)

    @cached_property
    def row(self) -> Int[Array, " pairs"]:
        """Index of each pair's cluster in `clusters`."""
        return np.searchsorted(self.clusters, self.cluster)

    def per_class(self) -> Int[Array, " classes"]:
        """Number of images of each of `classes`."""
        return sum_by(self.column, self.n)

    def per_cluster(self) -> Int[Array, " clusters"]:
        """Number of images in each of `clusters`."""
        return sum_by(self.row, self.n)

    def only(self, classes: Int[Array, " some"]) -> Counts:
        """The counts of the images of these classes alone."""
        is_kept = np.isin(self.class_, classes)
        return Counts(self.cluster[is_kept], self.class_[is_kept], self.n[is_kept])


def sum_by(index: Int[Array, " pairs"], n: Int[Array, " pairs"]) -> Int[Array, " groups"]:
    """The sum of `n` in each group; `index` is the group of each entry."""
    return np.bincount(index, n).astype(np.int64)  # summed as floats, which are exact below 2**53


@dataclass(frozen=True, eq=False)
class Matching:
    """A one-to-one map P from clusters to classes.

    A cluster or a class has no partner if there are more of one than of the other, or if it shares no image with any
    partner left.
    """

    clusters: Int[Array, " pairs"]  # those with a class, ascending
    classes: Int[Array, " pairs"]  # the class each of them is matched to
    n_shared: Int[Array, " pairs"]  # number of images in both
    n_images: int  # number of images that the map was computed from

    @property
    def accuracy(self) -> float:
        """ACC = 1/M sum_i 1(y_i = P(y~_i)), the share of images whose cluster is matched to their class."""
        return float(self.n_shared.sum()) / self.n_images

    def to_classes(self, clusters: Int[Array, " some"]) -> Int[Array, " some"]:
        """P(y~): the class each cluster is matched to, `UNLABELED` for a cluster without one."""
        place = np.minimum(np.searchsorted(self.clusters, clusters), len(self.clusters) - 1)
        return np.where(self.clusters[place] == clusters, self.classes[place], UNLABELED)


def match_counts(counts: Counts) -> Matching:
    """Compute the one-to-one map P from clusters to classes that is right for most images.

        max_P  sum_i 1(y_i = P(y~_i))

    y is the class and y~ the cluster of an image. There may be more clusters than classes, or fewer. A class and a
    cluster without a shared image are never matched. Among equally good maps the choice depends on the contents of the
    clusters, never on their numbers: renaming clusters changes no score.
    """
    from scipy.sparse import csr_array  # slow to import
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    classes, clusters = counts.classes, counts.clusters
    n_classes, n_clusters = len(classes), len(clusters)
    order = np.argsort(_fingerprint(counts), kind="stable")
    rank = np.argsort(order)

    # A sparse assignment: most pairs share no image, and a dense matrix with a cluster per image would not fit into
    # memory. Each class may also choose an empty cluster of its own. All weights are raised by one, since zero means
    # no edge; as each class chooses exactly once, the best choice is the same.
    empty = np.arange(n_classes)
    weight = np.concatenate([counts.n + 1.0, np.ones(n_classes)])
    choices = (np.concatenate([counts.column, empty]), np.concatenate([rank[counts.row], n_clusters + empty]))
    graph = csr_array((weight, choices), shape=(n_classes, n_clusters + n_classes))
    column, row = min_weight_full_bipartite_matching(graph, maximize=True)
    column, row = column[row < n_clusters], row[row < n_clusters]

    matched = clusters[order[row]]
    n_shared = np.asarray(graph[column, row], dtype=np.int64) - 1
    ascending = np.argsort(matched)
    return Matching(matched[ascending], classes[column][ascending], n_shared[ascending], counts.n_images)


def _fingerprint(counts: Counts) -> UInt64[Array, " clusters"]:
    """A hash of each cluster that depends only on its number of images of each class.

    Clusters with the same content are interchangeable; others have different hashes, up to a chance of about 2^-64.
    """
    # SplitMix64's mixing step; unsigned products and sums wrap around, as a hash should
    mixed = counts.class_.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    total = np.zeros(len(counts.clusters), dtype=np.uint64)
    np.add.at(total, counts.row, (mixed ^ (mixed >> np.uint64(31))) * counts.n.astype(np.uint64))
    return total
