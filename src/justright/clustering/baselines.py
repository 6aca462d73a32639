"""Baselines on frozen features, all with the same K.

Ward and average linkage need the distances of all pairs: `MOST_ROWS` rows take 1.2 GB.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from justright.clustering.principal import in_directions, principal_directions
from justright.clustering.semisup_kmeans import SemiSupKMeans
from justright.clustering.ward import cut_tree
from justright.geometry import unit_rows
from justright.utils.parallel import blas_threads
from justright.utils.types import UNLABELED, Array, Features, Labels

MOST_ROWS = 10_000
N_COMPONENTS = 128  # of whitened features
N_INIT = 3  # restarts of k-means
N_FOLDS = 5
SURE_SHARE = 0.8  # share of held-out labeled images that count as confident
INVERSE_PENALTY = 10.0  # C of scikit-learn's logistic regression

Linkage = Literal["ward", "average"]
Clusters = Int[Array, " images"]


@dataclass(frozen=True, eq=False)
class FrozenFeatures:
    """The input of the baselines: of the target only its features."""

    target: Features
    labeled: Float[Array, "labeled dim"]
    labels: Int[Array, " labeled"]  # known classes, numbered from 0
    n_known: int
    n_clusters: int  # K: known classes, and new clusters
    n_absent: int = 0  # known classes that are not in the target; methods without labels have as many clusters fewer
    seed: int = 0

    @cached_property
    def centered(self) -> Features:
        """Centered rows of the target, at unit length."""
        return self.like_centered(self.target)

    @cached_property
    def whitened(self) -> Features:
        """The first principal components of the target, each with variance 1."""
        return in_directions(self.target, *principal_directions(self.target, N_COMPONENTS, power=1.0))

    def like_centered(self, features: Float[Array, "rows dim"]) -> Float[Array, "rows dim"]:
        """Rows minus the mean of the target, at unit length."""
        return unit_rows(features - self.target.mean(axis=0))

    @property
    def n_target(self) -> int:
        """Number of clusters of the target for a method without labels."""
        return max(1, min(self.n_clusters - self.n_absent, len(self.target)))

    @property
    def n_new(self) -> int:
        """Number of clusters beyond the known classes."""
        return max(0, self.n_clusters - self.n_known)


def simple_clusters(features: FrozenFeatures, method: str) -> Clusters:
    """The cluster of each image of the target by one of `BASELINES`.

    Cluster k is known class k for k < n_known, and a new cluster otherwise.
    """
    with blas_threads(1):  # the result does not depend on the number of threads
        return BASELINES[method](features)


def pair_distances(x: Features, method: Linkage) -> Float[Array, " pairs"]:
    """The distances of rows i < j, Euclidean for Ward and else cosine, in the order of scipy's `pdist`.

    They come from matrix products, which are many times faster than `pdist`.
    """
    from sklearn.metrics.pairwise import cosine_distances, euclidean_distances  # imported here: it takes a second

    x = x.astype(np.float64)
    # rounding is least around the mean
    distances = euclidean_distances(x - x.mean(axis=0)) if method == "ward" else cosine_distances(x)
    return squareform(distances, checks=False)


def linked(x: Features, method: Linkage, n_clusters: int) -> Clusters:
    """The clusters of a tree of merges, cut at `n_clusters`."""
    if len(x) < 2:
        return np.zeros(len(x), dtype=np.int64)
    merges = linkage(pair_distances(x, method), method)[:, :2].astype(np.int64)
    return cut_tree(merges, n_clusters)


def _k_means(features: FrozenFeatures) -> Clusters:
    kmeans = SemiSupKMeans(features.n_target, n_init=N_INIT, seed=features.seed)
    return features.n_known + kmeans.fit(features.target).labels_


def _semi_supervised(features: FrozenFeatures, in_principal: bool = False) -> Clusters:
    rows = np.concatenate([features.labeled, features.target])
    if in_principal:
        rows = in_directions(rows, *principal_directions(rows, features.n_clusters))
    given = np.concatenate([features.labels, np.full(len(features.target), UNLABELED)])
    n_given = len(np.unique(features.labels))
    n_clusters = n_given + min(features.n_new, len(features.target))
    kmeans = SemiSupKMeans(n_clusters, n_init=N_INIT, seed=features.seed).fit(rows, given)
    number = np.concatenate([kmeans.classes_, features.n_known + np.arange(n_clusters - n_given)])
    return number[kmeans.labels_[len(features.labeled) :]].astype(np.int64)


def _linked(prepared: Callable[[FrozenFeatures], Features], method: Linkage, features: FrozenFeatures) -> Clusters:
    return features.n_known + linked(prepared(features), method, features.n_target)


def _classified(features: FrozenFeatures) -> Clusters:
    """Known classes where logistic regression is confident, Ward for the other images.

    Confident is a probability that `SURE_SHARE` of held-out labeled images reach.
    """
    labeled, labels = features.like_centered(features.labeled), features.labels
    if len(np.unique(labels)) < 2:
        return _linked(lambda given: given.centered, "ward", features)
    fold = _place_in_class(labels) % N_FOLDS
    held_out = [
        _probabilities(labeled[fold != k], labels[fold != k], labeled[fold == k])[0].max(axis=1)
        for k in range(N_FOLDS)
        if (fold == k).any() and len(np.unique(labels[fold != k])) > 1
    ]
    least = np.quantile(np.concatenate(held_out), 1 - SURE_SHARE) if held_out else 0.0
    probability, classes = _probabilities(labeled, labels, features.centered)
    clusters = classes[probability.argmax(axis=1)].astype(np.int64)
    rest = np.flatnonzero(probability.max(axis=1) < least)
    if n_new := min(features.n_new, len(rest)):
        clusters[rest] = features.n_known + linked(features.centered[rest], "ward", n_new)
    return clusters


def _probabilities(
    x: Float[Array, "rows dim"], labels: Int[Array, " rows"], others: Float[Array, "others dim"]
) -> tuple[Float[Array, "others classes"], Int[Array, " classes"]]:
    from sklearn.linear_model import LogisticRegression  # imported here because it takes a second

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about many classes of few images
        model = LogisticRegression(C=INVERSE_PENALTY, max_iter=500).fit(x, labels)
    return model.predict_proba(others), model.classes_


def _place_in_class(labels: Labels) -> Int[Array, " images"]:
    """Number of images of the same class before each image."""
    order, place = np.argsort(labels, kind="stable"), np.empty(len(labels), dtype=np.int64)
    counts = np.unique(labels, return_counts=True)[1]
    place[order] = np.concatenate([np.arange(n) for n in counts])
    return place


BASELINES: dict[str, Callable[[FrozenFeatures], Clusters]] = {
    "k-means": _k_means,
    "semi-supervised k-means": _semi_supervised,
    "k-means in principal directions": partial(_semi_supervised, in_principal=True),
    "Ward": partial(_linked, lambda given: given.target, "ward"),
    "Ward, centered": partial(_linked, lambda given: given.centered, "ward"),
    "Ward, whitened": partial(_linked, lambda given: given.whitened, "ward"),
    "average linkage": partial(_linked, lambda given: given.target, "average"),
    "average linkage, centered": partial(_linked, lambda given: given.centered, "average"),
    "average linkage, whitened": partial(_linked, lambda given: given.whitened, "average"),
    "logistic regression and Ward": _classified,
}
"""By name; semi-supervised k-means in principal directions sees labels too."""
