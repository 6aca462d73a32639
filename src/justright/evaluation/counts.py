"""How many images of each class fell into each cluster: all that evaluation needs to know. NMI and ARI come from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from justright.utils.errors import DataError, DegenerateError
from justright.utils.types import Array, Labels

_DENSE_CELLS = 1 << 24  # up to this many a dense tally (8 bytes each) is quicker than sorting the images


@dataclass(frozen=True, eq=False)
class Counts:
    """Images n(k, c) in cluster k and of class c: one entry a cell that holds any, ordered by cluster, then class."""

    cluster: Int[Array, " cells"]  # the cluster k of the cell
    class_: Int[Array, " cells"]  # its class c
    n: Int[Array, " cells"]  # how many images lie in it, at least 1

    @staticmethod
    def of(y_true: Labels, y_pred: Labels) -> Counts:
        """Count images by the class `y_true` and the cluster `y_pred`, any non-negative integers."""
        _check_labels(y_true, y_pred)
        classes, class_index = _compact(y_true)
        clusters, cluster_index = _compact(y_pred)
        cell = cluster_index * len(classes) + class_index
        if len(clusters) * len(classes) <= max(_DENSE_CELLS, 4 * len(cell)):
            tally = np.bincount(cell)
            filled, n = np.flatnonzero(tally), tally[tally > 0]
        else:
            filled, n = np.unique(cell, return_counts=True)
        row, column = np.divmod(filled, len(classes))
        return Counts(clusters[row], classes[column], n.astype(np.int64))

    @property
    def n_images(self) -> int:
        """All images counted."""
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
    def column(self) -> Int[Array, " cells"]:
        """Where the class of each cell stands among `classes`."""
        return np.searchsorted(self.classes, self.class_)

    @cached_property
    def row(self) -> Int[Array, " cells"]:
        """Where the cluster of each cell stands among `clusters`."""
        return np.searchsorted(self.clusters, self.cluster)

    def per_class(self) -> Int[Array, " classes"]:
        """The images of each of `classes`."""
        return sum_by(self.column, self.n)

    def per_cluster(self) -> Int[Array, " clusters"]:
        """The images of each of `clusters`."""
        return sum_by(self.row, self.n)

    def only(self, classes: Int[Array, " some"]) -> Counts:
        """The counts of the images of these classes alone."""
        is_kept = np.isin(self.class_, classes)
        return Counts(self.cluster[is_kept], self.class_[is_kept], self.n[is_kept])


def sum_by(index: Int[Array, " cells"], n: Int[Array, " cells"]) -> Int[Array, " groups"]:
    """The sum of `n` in each group; `index` says which group an entry is of."""
    return np.bincount(index, n).astype(np.int64)  # added up as floats, which are exact below 2**53


def _compact(labels: Labels) -> tuple[Int[Array, " values"], Labels]:
    """The values that occur, ascending, and for each image the place of its value among them."""
    labels = labels.astype(np.int64, copy=False)
    if labels.max() < max(_DENSE_CELLS, 4 * len(labels)):
        is_used = np.bincount(labels) > 0
        return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[labels]
    values, inverse = np.unique(labels, return_inverse=True)
    return values, inverse


def _check_labels(y_true: Labels, y_pred: Labels) -> None:
    if y_true.ndim != 1 or y_true.shape != y_pred.shape:
        problem = f"Classes of shape {y_true.shape} and clusters of shape {y_pred.shape}."
        raise DataError(problem, expected="two arrays with one entry per image, in the same order")
    if not len(y_true):
        raise DegenerateError("No images to evaluate.", expected="at least one image with a class and a cluster")
    for what, labels in (("class", y_true), ("cluster", y_pred)):
        if not np.issubdtype(labels.dtype, np.integer):
            raise DataError(f"The {what} of an image is given as {labels.dtype}.", expected="integers")
        if labels.max() > np.iinfo(np.int64).max:
            raise DataError(f"A {what} of {labels.max()}.", expected=f"at most {np.iinfo(np.int64).max}")
        if labels.min() < 0:
            raise DataError(
                f"{int((labels < 0).sum())} of {len(labels)} images have a negative {what}, e.g. {int(labels.min())}.",
                expected=f"a {what} of at least 0 for every image",
                advice="leave images without a known class out of the evaluation",
            )


def normalized_mutual_information(counts: Counts) -> float:
    """NMI = 2 I(Y; Y~) / (H(Y) + H(Y~)), 1 for equal partitions, 0 for independent ones.

    With I = H(Y) + H(Y~) - H(Y, Y~). Two partitions into a single group are equal: 1.
    """
    class_entropy, cluster_entropy = _entropy(counts.per_class()), _entropy(counts.per_cluster())
    if class_entropy + cluster_entropy == 0:
        return 1.0
    information = class_entropy + cluster_entropy - _entropy(counts.n)
    return float(np.clip(2 * information / (class_entropy + cluster_entropy), 0.0, 1.0))


def adjusted_rand_index(counts: Counts) -> float:
    """ARI = (R - E) / (M - E), the Rand index adjusted for chance: 1 for equal partitions, 0 on average by chance.

    R counts the pairs of images that share both class and cluster, E = A B / T is its expectation, M = (A + B) / 2
    its maximum, where A pairs share the class, B the cluster, and T are all pairs (Hubert and Arabie, 1985).
    """
    both, same_class, same_cluster = _pairs(counts.n), _pairs(counts.per_class()), _pairs(counts.per_cluster())
    every = _pairs(np.array([counts.n_images]))
    expected = same_class * same_cluster / every if every else 0.0
    most = (same_class + same_cluster) / 2
    # no pair can differ: one image, one group on both sides, or every image alone on both sides
    return 1.0 if most == expected else (both - expected) / (most - expected)


def _entropy(n: Int[Array, " groups"]) -> float:
    from scipy.special import entr  # slow to import, and most commands judge nothing

    return float(entr(n / n.sum()).sum())


def _pairs(n: Int[Array, " groups"]) -> float:
    # as floats: the square of a few billion images would overflow an integer
    return float((n * (n - 1.0) / 2).sum())
