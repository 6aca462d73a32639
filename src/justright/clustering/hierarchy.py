"""Clusters at several levels, from fine to coarse, by semi-supervised k-means; used by SelEx."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import cdist

from justright.clustering.arrays import Centroids
from justright.clustering.semisup_kmeans import SemiSupKMeans
from justright.geometry import unit_rows
from justright.utils.types import UNLABELED, Array, Features, Labels

Order = Literal["restored", "official"]


class Hierarchy(NamedTuple):
    """The levels of a hierarchy, the finest first."""

    labels: Int[Array, "levels images"]  # the cluster of each image
    reach: Float[Array, "levels images"]  # distance of its centroid to the nearest other one; infinite if alone


def level_sizes(n_known: int, n_new: int) -> list[tuple[int, int]]:
    """Numbers of known and new clusters: each level has half as many, down to one known; without known, to two new."""
    sizes = [(n_known, n_new)]
    while sizes[-1][0] > 1 or (not n_known and sizes[-1][1] > 2):
        known, new = sizes[-1]
        sizes.append((max(known // 2, min(known, 1)), max(new // 2, min(new, 1))))
    return sizes


def hierarchy(features: Features, labels: Labels, n_clusters: int, seed: int, order: Order = "restored") -> Hierarchy:
    """Clusters of images, some of which are labeled, at every level.

    The finest level is semi-supervised k-means with all `n_clusters`. At a coarser one the centroids of known classes
    are grouped by k-means; images of their clusters, labeled or not, stay with them, and the other images are clustered
    again. Groups are always made from the finest level.

    Parameters:
        labels: the class of each image, numbered from 0, -1 for unlabeled.
        order: official assigns coarse labels to the wrong images, as the public code does: first those of images in
            known clusters, then those of the others, regardless of the order of images.
    """
    x = unit_rows(features)
    n_known = len(np.unique(labels[labels != UNLABELED]))
    clusters, centroids = _clusters(x, labels, n_clusters, seed)
    is_known = clusters < n_known
    levels, reach = [clusters], [_reach(centroids)[clusters]]
    for known, new in level_sizes(n_known, n_clusters - n_known)[1:]:
        given = np.full(len(x), UNLABELED)
        if n_known:
            groups = SemiSupKMeans(known, seed=seed, normalize=False).fit(centroids[:n_known]).labels_
            given[is_known] = groups[clusters[is_known]]
        coarse, coarse_centroids = _clusters(x, given, known + new, seed)
        if order == "official":
            coarse = np.concatenate([coarse[is_known], coarse[~is_known]])
        levels.append(coarse)
        reach.append(_reach(coarse_centroids)[coarse])
    return Hierarchy(np.stack(levels), np.stack(reach))


def _clusters(x: Features, given: Labels, n_clusters: int, seed: int) -> tuple[Labels, Centroids]:
    kmeans = SemiSupKMeans(n_clusters, n_init=1, seed=seed, normalize=False).fit(x, given)
    return kmeans.labels_, kmeans.centroids_


def _reach(centroids: Centroids) -> Float[Array, " clusters"]:
    distance = cdist(centroids, centroids)
    np.fill_diagonal(distance, np.inf)
    return distance.min(axis=1)
