"""*Names count*: the score in which an image that is called by the name of a class must be of that class."""

from __future__ import annotations

from justright.evaluation.counts import Counts
from justright.evaluation.matching import match_counts
from justright.utils.types import UNLABELED, Labels, Mask


def names_right(y_true: Labels, y_pred: Labels, is_old: Mask, called: Labels) -> Mask:
    """Which images are right if names count: y is the class of an image, y~ its cluster, a what it is called.

        right_i = 1(a_i = y_i)                           if the image is called by a name
        right_i = 1(y_i is new) 1(y_i = Q(y~_i))         otherwise

    Q is the one-to-one map from clusters to new classes that is right for most images that have no name and are of a
    new class. So images of a known class in a cluster without its name are wrong, while `evaluate` may match them.

    Parameters:
        called: the class whose name an image has, `UNLABELED` where it has none; a name that no class of y_true has is
            any other number.
    """
    is_right = called == y_true
    is_matched = (called == UNLABELED) & ~is_old
    if is_matched.any():
        classes, clusters = y_true[is_matched], y_pred[is_matched]
        is_right[is_matched] = match_counts(Counts.of(classes, clusters)).to_classes(clusters) == classes
    return is_right
