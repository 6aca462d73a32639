"""The best one-to-one map from clusters to classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, UInt64

from justright.evaluation.counts import Counts
from justright.utils.types import UNLABELED, Array


@dataclass(frozen=True, eq=False)
class Matching:
    """A one-to-one map P from clusters to classes.

    A cluster or a class may be missing: there were more of one than of the other, or it shares no image with any
    partner left.
    """

    clusters: Int[Array, " pairs"]  # those that have a class, ascending
    classes: Int[Array, " pairs"]  # the class that each of them is taken for
    n_shared: Int[Array, " pairs"]  # the images in both
    n_images: int  # all images the map was made on

    @property
    def accuracy(self) -> float:
        """ACC = 1/M sum_i 1(y_i = P(y~_i)), the share of images whose cluster is matched to their class."""
        return float(self.n_shared.sum()) / self.n_images

    def to_classes(self, clusters: Int[Array, " some"]) -> Int[Array, " some"]:
        """P(y~): the class each cluster is taken for, `UNLABELED` for a cluster without one."""
        place = np.minimum(np.searchsorted(self.clusters, clusters), len(self.clusters) - 1)
        return np.where(self.clusters[place] == clusters, self.classes[place], UNLABELED)


def match_counts(counts: Counts) -> Matching:
    """The one-to-one map P from clusters to classes that is right for most images, over all that were counted.

        max_P  sum_i 1(y_i = P(y~_i))

    y is the class and y~ the cluster of an image. There may be more clusters than classes and the reverse. A pair that
    shares no image is no pair, though it would cost nothing. Among equally good maps the choice depends on what the
    clusters hold and never on how they are numbered, so renaming clusters changes no score.
    """
    from scipy.sparse import csr_array  # slow to import, and most commands judge nothing
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    classes, clusters = counts.classes, counts.clusters
    n_classes, n_clusters = len(classes), len(clusters)
    order = np.argsort(_fingerprint(counts), kind="stable")
    rank = np.argsort(order)

    # The assignment on filled cells alone: most pairs share no image, and a dense matrix of every image as a cluster of
    # its own would fill the memory. Each class may also choose nothing, an empty cluster only it can see. All weights
    # are raised by one, since a zero would be no edge; as each class chooses exactly once, the best choice stays.
    nothing = np.arange(n_classes)
    weight = np.concatenate([counts.n + 1.0, np.ones(n_classes)])
    choices = (np.concatenate([counts.column, nothing]), np.concatenate([rank[counts.row], n_clusters + nothing]))
    graph = csr_array((weight, choices), shape=(n_classes, n_clusters + n_classes))
    column, row = min_weight_full_bipartite_matching(graph, maximize=True)
    column, row = column[row < n_clusters], row[row < n_clusters]

    matched = clusters[order[row]]
    n_shared = np.asarray(graph[column, row], dtype=np.int64) - 1
    ascending = np.argsort(matched)
    return Matching(matched[ascending], classes[column][ascending], n_shared[ascending], counts.n_images)


def _fingerprint(counts: Counts) -> UInt64[Array, " clusters"]:
    """One number per cluster that depends only on how many images of which class it holds.

    Clusters with the same content are interchangeable; others differ, up to a chance of about 2^-64.
    """
    # SplitMix64's mixing step; unsigned products and sums wrap around, which is what a hash wants
    mixed = counts.class_.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    total = np.zeros(len(counts.clusters), dtype=np.uint64)
    np.add.at(total, counts.row, (mixed ^ (mixed >> np.uint64(31))) * counts.n.astype(np.uint64))
    return total
