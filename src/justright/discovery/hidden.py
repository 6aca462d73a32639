"""How accurately known classes are clustered if their labels are hidden, compared with what their neighbors suggest.

Only features before training are used, because training has used the labels.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.special import logit

from justright.clustering.spreading import nearest_rows, share_alike, spread
from justright.clustering.ward import constrained_ward
from justright.geometry.rows import evenly_spaced
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED, Array

N_DRAWS = 4
LEAST_CLASSES = 4  # known classes; with fewer nothing is hidden
MOST_IMAGES = 2_000  # target images, and as many labeled ones
SHRINK = 6.0  # number of hidden classes at which the shift is halved
MOST_SHIFT = 1.5


def hidden_class_shift(
    frozen: Float[Array, "rows dim"],
    fixed: Int[Array, " rows"],
    n_labeled: int,
    n_categories: int,
    n_neighbors: int,
    neighbor_share: float,
    seed: int = 0,
) -> float | None:
    """How much more accurate the clusters of hidden classes are than their neighbors suggest.

        n / (n + 6) (logit(right) - logit(alike))

    In each of several draws half of the known classes lose their labels, and the images are clustered as in a run.
    `right` is the share of labeled images of hidden classes in the cluster matched to their class; `alike` is the mean
    share of their neighbors in the same cluster; n is the number of hidden classes. None without enough classes.

    Parameters:
        frozen: features before training as in z, of labeled images, then of the target.
        fixed: the known class of each row, numbered from 0 without gaps, -1 for unlabeled.
    """
    n_known, n_target = int(fixed.max(initial=UNLABELED)) + 1, len(fixed) - n_labeled
    of_labeled = evenly_spaced(n_labeled, min(n_labeled, MOST_IMAGES))
    of_target = n_labeled + evenly_spaced(n_target, min(n_target, MOST_IMAGES))
    rows = np.concatenate([of_labeled, of_target])
    is_labeled = rows < n_labeled
    frozen, fixed = frozen[rows], fixed[rows]
    if len(np.unique(fixed[is_labeled])) < max(LEAST_CLASSES, n_known) or n_categories > len(rows):
        return None
    near = nearest_rows(frozen, frozen, n_neighbors, np.arange(len(rows)))
    n_hidden = n_known // 2
    n_kept = n_known - n_hidden
    n_right, n_alike, n_seen = 0, 0.0, 0
    for number in range(N_DRAWS):
        order = generator(seed, "hidden classes", number).permutation(n_known)
        kept_number = np.full(n_known + 1, UNLABELED)  # of each class; the last entry is that of unlabeled images
        kept_number[order[n_hidden:]] = np.arange(n_kept)
        kept = kept_number[fixed]
        start = constrained_ward(frozen, kept, n_categories).labels
        category = spread(start, kept, near, n_categories, neighbor_share).argmax(axis=1)
        judged = np.flatnonzero(is_labeled & (kept == UNLABELED))
        n_right += _n_matched(category[judged] - n_kept, fixed[judged], n_categories, n_known)
        n_alike += float(share_alike(category, near, category)[judged].sum())
        n_seen += len(judged)
    right, alike = (n_right + 1) / (n_seen + 2), (n_alike + 1) / (n_seen + 2)
    shift = n_hidden / (n_hidden + SHRINK) * (logit(right) - logit(alike))
    return float(np.clip(shift, -MOST_SHIFT, MOST_SHIFT))


def _n_matched(cluster: Int[Array, " images"], label: Int[Array, " images"], n_clusters: int, n_classes: int) -> int:
    """Images in the cluster of their class, by the best one-to-one matching; a negative cluster matches none."""
    counts = np.zeros((n_clusters, n_classes), dtype=np.int64)
    is_free = cluster >= 0
    np.add.at(counts, (cluster[is_free], label[is_free]), 1)
    return int(counts[linear_sum_assignment(-counts)].sum())
