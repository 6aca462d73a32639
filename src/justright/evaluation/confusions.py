"""Errors by kind and cause, as in Fig. 3 of the paper, and the matched confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from justright.evaluation.accuracy import classes_where
from justright.evaluation.matching import Counts, Matching, match_counts, sum_by
from justright.utils.types import UNLABELED, Array, Labels, Mask


@dataclass(frozen=True, eq=False)
class Errors:
    """Right and wrong images of each class; the wrong ones by predicted kind and by cause.

    With P the best one-to-one map from clusters to classes, an image of class c in cluster k is right if P(k) = c.
    Otherwise it is predicted old if P(k) is an old class, and new if P(k) is a new class or k has no class.
    The cause of the error is
    - split, if more than half of cluster k is of class c: k is a piece of c, but another cluster is matched to c;
    - merged, if more than half of class c is in k, which is matched to another class;
    - stray otherwise. Where both split and merged hold, split counts.

    Classes are in ascending order. n_split, n_merged and n_stray are the wrong images of a class by cause.
    """

    classes: Int[Array, " classes"]
    is_old: Bool[Array, " classes"]
    cluster: Int[Array, " classes"]  # the one matched to the class, or `UNLABELED`
    n_images: Int[Array, " classes"]  # n_right + n_as_old + n_as_new
    n_right: Int[Array, " classes"]
    n_as_old: Int[Array, " classes"]
    n_as_new: Int[Array, " classes"]
    n_split: Int[Array, " classes"]
    n_merged: Int[Array, " classes"]
    n_stray: Int[Array, " classes"]

    def by_kind(self) -> dict[str, int]:
        """Total number of wrong images by true kind and predicted kind."""
        return {
            "new_as_old": int(self.n_as_old[~self.is_old].sum()),
            "new_as_new": int(self.n_as_new[~self.is_old].sum()),
            "old_as_new": int(self.n_as_new[self.is_old].sum()),
            "old_as_old": int(self.n_as_old[self.is_old].sum()),
        }

    def by_cause(self) -> dict[str, int]:
        """Total number of wrong images by cause."""
        return {cause: int(getattr(self, f"n_{cause}").sum()) for cause in ("split", "merged", "stray")}

    def to_dict(self) -> dict[str, object]:
        """Totals as plain JSON values."""
        return {
            "n_images": int(self.n_images.sum()),
            "n_right": int(self.n_right.sum()),
            **self.by_kind(),
            **self.by_cause(),
        }


@dataclass(frozen=True, eq=False)
class Confusion:
    """Images by class and cluster, ordered so that right images are on the diagonal.

    Clusters are those matched to the classes, in their order (`UNLABELED` for an empty column), then those without a
    class, the largest first.
    """

    classes: Int[Array, " classes"]  # old ones first
    clusters: Int[Array, " clusters"]
    n: Int[Array, "classes clusters"]  # the images
    n_old: int  # number of old classes


def break_down(y_true: Labels, y_pred: Labels, is_old: Mask) -> Errors:
    """Count errors by kind and cause; arguments as in `evaluate`, matched once over all images."""
    counts = Counts.of(y_true, y_pred)
    matching, classes = match_counts(counts), counts.classes
    is_old_class = np.isin(classes, classes_where(is_old, y_true, "is_old"))
    n_images, in_cluster = counts.per_class(), counts.per_cluster()[counts.row]

    predicted = matching.to_classes(counts.cluster)  # P(k) of each pair
    is_right = predicted == counts.class_
    is_as_old = ~is_right & np.isin(predicted, classes[is_old_class])  # UNLABELED is no class, so it counts as new
    is_split = ~is_right & (2 * counts.n > in_cluster)
    is_merged = ~is_right & ~is_split & (2 * counts.n > n_images[counts.column])

    def per_class(pairs: Bool[Array, " pairs"]) -> Int[Array, " classes"]:
        return sum_by(counts.column, pairs * counts.n)

    return Errors(
        classes=classes,
        is_old=is_old_class,
        cluster=_clusters_of(matching, classes),
        n_images=n_images,
        n_right=per_class(is_right),
        n_as_old=per_class(is_as_old),
        n_as_new=per_class(~is_right & ~is_as_old),
        n_split=per_class(is_split),
        n_merged=per_class(is_merged),
        n_stray=per_class(~is_right & ~is_split & ~is_merged),
    )


def matched_confusion(counts: Counts, old_classes: Int[Array, " old"]) -> Confusion:
    """The confusion of classes and clusters, ordered by the matching."""
    matching = match_counts(counts)
    is_old = np.isin(counts.classes, old_classes)
    classes = np.concatenate([counts.classes[is_old], counts.classes[~is_old]])
    is_left = ~np.isin(counts.clusters, matching.clusters)
    largest_first = np.argsort(-counts.per_cluster()[is_left], kind="stable")
    clusters = np.concatenate([_clusters_of(matching, classes), counts.clusters[is_left][largest_first]])

    n = np.zeros((len(classes), len(clusters)), dtype=np.int64)
    n[_place(counts.class_, classes), _place(counts.cluster, clusters)] = counts.n
    return Confusion(classes, clusters, n, n_old=int(is_old.sum()))


def _clusters_of(matching: Matching, classes: Int[Array, " classes"]) -> Int[Array, " classes"]:
    """The cluster matched to each class, or `UNLABELED`."""
    inverse = np.full(len(classes), UNLABELED, dtype=np.int64)
    inverse[_place(matching.classes, classes)] = matching.clusters
    return inverse


def _place(values: Int[Array, " values"], among: Int[Array, " among"]) -> Int[Array, " values"]:
    """Index of each value in an array that need not be sorted."""
    order = np.argsort(among, kind="stable")
    return order[np.searchsorted(among, values, sorter=order)]
