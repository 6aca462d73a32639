"""Transfer flow: does what labels teach separate the target better than no labels do?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DegenerateError
from justright.geometry import row_norms
from justright.seeding import generator
from justright.selection.discriminant import discriminant_features
from justright.selection.shards import ArrayLike, TargetFeatures, as_features, as_labels
from justright.selection.target_clusters import ClusterCount, cluster_target
from justright.types import Array

N_KERNELS = 5
MAX_IMAGES = 50
GROUPS_AT_ONCE = 20


@dataclass(frozen=True)
class LabelEffect:
    """Transfer flow of the target in two representations, and by how much labels raise it."""

    without_labels: float
    with_labels: float

    @property
    def gain(self) -> float:
        """Relative rise: above 0, the labels help to tell the target's clusters apart; below 0, they hurt."""
        return self.with_labels / self.without_labels - 1.0


def transfer_flow(
    features: ArrayLike, clusters: ArrayLike, *, max_images: int | None = MAX_IMAGES, seed: int = 0
) -> float:
    """How far apart the classes of a target lie in a representation [1].

    T = sum_{c != c'}  n_c n_c' / (n (n - 1))  MMD^2(P_c, P_c')

    P_c are the features of class c, n_c their number. MMD^2 is the biased estimate, with the sum of five Gaussian
    kernels exp(-|x - y|^2 / (s 2^m)), m = -2 .. 2, s the mean squared distance among the images of both classes, so
    that T does not depend on the scale of features. With clusters for classes it is the pseudo transfer flow.

    At most `max_images` of a cluster, drawn by seed, enter MMD^2 (all if None); its cost is their number squared, for
    each pair of clusters. The factors n_c always count all images.

    [1] Z. Li et al., Supervised Knowledge May Hurt Novel Class Discovery Performance, TMLR 2023, arXiv 2306.03648.
    The formula was checked against the evaluation in the authors' code (github.com/J-L-O/SK-Hurt-NCD), not against
    the text of the paper, which was not at hand.
    """
    array = as_features(features, "transfer_flow").astype(np.float64)
    array -= array.mean(axis=0)  # distances ignore the origin; amid the data, their expanded square is accurate
    labels = as_labels(clusters, len(array), "transfer_flow")
    found, counts = np.unique(labels, return_counts=True)
    if len(found) < 2:
        raise DegenerateError(f"{len(found)} cluster", expected="at least 2 clusters to tell apart")
    rows = [_some(np.flatnonzero(labels == c), max_images, seed, int(c)) for c in found]
    mmd = _squared_mmd([array[members] for members in rows])
    share = np.outer(counts, counts) / (len(array) * (len(array) - 1))
    return float((share * mmd).sum())


def label_effect(
    pool_features: ArrayLike,
    pool_labels: ArrayLike,
    target_features: ArrayLike,
    sample_weight: Float[Array, " pool"] | None = None,
    *,
    n_clusters: ClusterCount = None,
    max_images: int | None = MAX_IMAGES,
    seed: int = 0,
) -> LabelEffect:
    """Pseudo transfer flow of the target, in the given features and in features the pool's labels have shaped.

    The paper compares networks trained with and without labels. Before any training, `discriminant_features` stand in
    for the former: a linear map learned from the pool, each image counted by its weight. That stand-in is ours, not
    the paper's, so read the sign and the order of selections rather than the size. As in the authors' code, each
    representation is clustered by k-means for itself.
    """
    pool, target = as_features(pool_features, "pool"), as_features(target_features, "target")
    labels = as_labels(pool_labels, len(pool), "pool")
    shaped = discriminant_features(pool, labels, target, sample_weight)
    flows = []
    for features in (target.astype(np.float64), shaped):
        clusters, _ = cluster_target(TargetFeatures([features]), features.shape[1], n_clusters, seed)
        flows.append(transfer_flow(features, clusters, max_images=max_images, seed=seed))
    return LabelEffect(*flows)


def _some(rows: Int[Array, " members"], max_images: int | None, seed: int, cluster: int) -> Int[Array, " some"]:
    if max_images is None or len(rows) <= max_images:
        return rows
    return np.sort(generator(seed, "transfer flow", cluster).choice(rows, max_images, replace=False))


def _squared_mmd(groups: list[Float[Array, "_ dim"]]) -> Float[Array, "groups groups"]:
    """MMD^2 of every pair of groups, one row of the matrix at a time."""
    sizes = np.array([len(group) for group in groups])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    images = np.concatenate(groups)
    within = [_squared_distance(group, group).ravel() for group in groups]
    within_sum = np.array([square.sum() for square in within])
    mmd = np.zeros((len(groups), len(groups)))
    square, first = np.zeros((0, 0)), 0
    for i in range(len(groups) - 1):
        later = slice(i + 1, None)
        n_later = sizes[later]
        if i % GROUPS_AT_ONCE == 0:  # one large product is many times quicker than one for each group
            first = starts[i]
            square = _squared_distance(images[first : starts[min(i + GROUPS_AT_ONCE, len(groups))]], images[first:])
        between = square[starts[i] - first : starts[i + 1] - first, starts[i + 1] - first :]
        between_sum = _sum_parts(between.sum(axis=0), n_later)
        n = sizes[i] + n_later
        mean_square = (within_sum[i] + within_sum[later] + 2 * between_sum) / (n * n - n)
        # Where all images of a pair coincide any width will do: its kernels are all 1.
        widest = np.where(mean_square > 0, mean_square, 1.0) * 2.0 ** (N_KERNELS // 2)
        own = _kernel(within[i] / widest[:, None]).mean(axis=1)
        other = _sum_parts(_kernel(np.concatenate(within[i + 1 :]) / np.repeat(widest, n_later**2)), n_later**2)
        cross = _sum_parts(_kernel(between / np.repeat(widest, n_later)).sum(axis=0), n_later)
        mmd[i, later] = own + other / n_later**2 - 2 * cross / (sizes[i] * n_later)
    return mmd + mmd.T


def _squared_distance(a: Float[Array, "a dim"], b: Float[Array, "b dim"]) -> Float[Array, "a b"]:
    return np.maximum(row_norms(a)[:, None] ** 2 + row_norms(b) ** 2 - 2 * (a @ b.T), 0.0)


def _kernel(scaled: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The sum of kernels, widest first: halving the width squares the kernel, which spares the exponentials."""
    kernel = np.exp(-scaled)
    total = kernel.copy()
    for _ in range(N_KERNELS - 1):
        kernel *= kernel
        total += kernel
    return total


def _sum_parts(values: Float[Array, " n"], sizes: Int[Array, " parts"]) -> Float[Array, " parts"]:
    """Sums over consecutive parts of the given sizes."""
    return np.add.reduceat(values, np.concatenate([[0], np.cumsum(sizes)[:-1]]))
