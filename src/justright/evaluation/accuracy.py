"""Accuracy on all images, on those of old and on those of new classes, with intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Int

from justright.evaluation.intervals import wilson
from justright.evaluation.matching import Counts, match_counts
from justright.evaluation.scores import LEVEL, PROTOCOLS, Protocol, Scores
from justright.utils.errors import DataError
from justright.utils.file_rows import ArrayLike
from justright.utils.types import UNLABELED, Array, Labels, Mask
from justright.utils.validation import check_categories, check_level, to_numpy


def evaluate(
    y_true: Any,
    y_pred: Any,
    is_old: Any,
    *,
    has_kept_labels: Any = None,
    called: Any = None,
    protocol: Protocol = "v2",
    with_intervals: bool = True,
    level: float = LEVEL,
) -> Scores:
    """Score the clusters `y_pred` against the classes `y_true`, one entry per image of the target.

    Classes and clusters are whole numbers or names: arrays, tensors, lists or columns of a table.

    With P, the one-to-one map from clusters to classes that is right for most images, the accuracy of a set S is

        ACC(S) = 1/|S| sum_{i in S} 1(y_i = P(y~_i))

    - "v2": one P over all images; All, Old and New are ACC of all images and of those of old and new classes, so
      All = share_old Old + share_new New.
    - "v2b": the same P, then the mean of ACC over classes, so that rare classes count as much as common ones.
    - "v1": legacy; one P for the old and another for the new images, blind to confusions between them. All is their
      mixture by images. Never below v2; only for comparison with early papers.

    `is_old`: whether the class of the image has labeled images in the original split, before any selection.
    `has_kept_labels` splits Old into classes whose labels selection kept and those it dropped; old images only.
    Both must agree within a class. Intervals are those of Wilson, with the matching held fixed. `called` is the class
    whose name each image has, for the second score, *names count*: see `names_right`.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score  # slow to import

    if protocol not in PROTOCOLS:
        raise DataError(f"protocol {protocol!r}", expected=f"one of {', '.join(PROTOCOLS)}")
    check_level(level)
    y_true = check_categories(y_true, what="classes")
    y_pred = check_categories(y_pred, len(y_true), "clusters")
    is_old = _one_per_image(is_old, len(y_true), "is_old", np.bool_)
    counts = Counts.of(y_true, y_pred)
    classes, n_images = counts.classes, counts.per_class()
    is_old_class = np.isin(classes, classes_where(is_old, y_true, "is_old"))
    groups = {"all": np.ones_like(is_old_class), "old": is_old_class, "new": ~is_old_class}
    if has_kept_labels is not None:
        kept = _one_per_image(has_kept_labels, len(y_true), "has_kept_labels", np.bool_)
        is_kept = np.isin(classes, classes_where(kept[is_old], y_true[is_old], "has_kept_labels"))
        groups |= {"old_kept": is_old_class & is_kept, "old_dropped": is_old_class & ~is_kept}
    n_right = np.zeros(len(classes), dtype=np.int64)
    for side in (is_old_class, ~is_old_class) if protocol == "v1" else (groups["all"],):
        if side.any():
            matching = match_counts(counts.only(classes[side]))
            n_right[np.searchsorted(classes, matching.classes)] = matching.n_shared
    accuracies = {name: accuracy_of(n_right[of], n_images[of], protocol == "v2b") for name, of in groups.items()}
    names = {}
    if called is not None:
        called = _one_per_image(called, len(y_true), "called", np.integer)
        names = group_means(names_right(y_true, y_pred, is_old, called), is_old)
    intervals = {name: wilson(share, n, level) for name, (share, n) in accuracies.items() if n and with_intervals}
    return Scores(
        **{name: share for name, (share, _) in accuracies.items()},
        nmi=float(normalized_mutual_info_score(y_true, y_pred)),
        ari=float(adjusted_rand_score(y_true, y_pred)),
        protocol=protocol,
        n_images=counts.n_images,
        n_old=int(n_images[is_old_class].sum()),
        n_new=int(n_images[~is_old_class].sum()),
        n_classes=len(classes),
        n_clusters=len(counts.clusters),
        level=level,
        intervals=intervals,
        names=names,
    )


def _one_per_image(values: Any, n_images: int, name: str, kind: type) -> Array:
    array = to_numpy(values)
    if array.shape != (n_images,) or not np.issubdtype(array.dtype, kind):
        expected = f"{'True or False' if kind is np.bool_ else 'a class'} for each image"
        raise DataError(f"{name} of shape {array.shape} and type {array.dtype}, {n_images} images", expected=expected)
    return array


def names_right(y_true: Labels, y_pred: Labels, is_old: Mask, called: Labels) -> Mask:
    """Which images are right if names count: y is the class of an image, y~ its cluster, a its name.

        right_i = 1(a_i = y_i)                           if the image has a name
        right_i = 1(y_i is new) 1(y_i = Q(y~_i))         otherwise

    Q is the one-to-one map from clusters to new classes that is right for most images without a name and of a new
    class. So images of a known class in a cluster without its name are wrong, while `evaluate` may match them.

    `called` is the class whose name an image has: `UNLABELED` for no name, any other number for a name that is no class
    of y_true.
    """
    is_right = called == y_true
    is_matched = (called == UNLABELED) & ~is_old
    if is_matched.any():
        classes, clusters = y_true[is_matched], y_pred[is_matched]
        is_right[is_matched] = match_counts(Counts.of(classes, clusters)).to_classes(clusters) == classes
    return is_right


def group_means(is_right: Mask, is_old: Mask) -> dict[str, float]:
    """The share of right images among all, those of old and those of new classes; NaN where there is none."""
    groups = {"all": np.ones_like(is_old), "old": is_old, "new": ~is_old}
    return {name: float(is_right[of].mean()) if of.any() else np.nan for name, of in groups.items()}


def classes_where(flag: ArrayLike, y_true: Labels, name: str) -> Int[Array, " some"]:
    """The classes whose images have the flag; all images of a class must have it, or none."""
    flag = _one_per_image(flag, len(y_true), name, np.bool_)
    if len(mixed := np.intersect1d(y_true[flag], y_true[~flag])):
        problem = f"{name} is true for some images and false for others of {len(mixed)} classes, e.g. class {mixed[0]}"
        raise DataError(problem, expected="one value for all images of a class")
    return np.unique(y_true[flag])


def accuracy_of(
    n_right: Int[Array, " classes"], n_images: Int[Array, " classes"], over_classes: bool
) -> tuple[float, float]:
    """The accuracy on some classes, and the number of images whose share has its variance; NaN and 0 without images.

    A mean over C classes with accuracies p_c counts the images of small classes more. Its variance is

        1 / C^2 sum_c p_c (1 - p_c) / n_c

    and that of n images is p (1 - p) / n. If each class is all right or all wrong, all images count as equally
    uncertain (Kish, 1965): n = C^2 / sum_c 1 / n_c.
    """
    if not len(n_images):
        return math.nan, 0.0
    if not over_classes:
        return float(n_right.sum() / n_images.sum()), float(n_images.sum())
    p, n_classes = n_right / n_images, len(n_images)
    accuracy, variance = float(p.mean()), float((p * (1 - p) / n_images).sum()) / n_classes**2
    if variance == 0:
        return accuracy, n_classes**2 / float((1 / n_images).sum())
    return accuracy, accuracy * (1 - accuracy) / variance
