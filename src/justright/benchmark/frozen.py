"""What a selection does on frozen features: semi-supervised k-means with the classes it keeps, nothing trained."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from jaxtyping import Float, Int

from justright.clustering import SemiSupKMeans
from justright.errors import DegenerateError
from justright.types import UNLABELED, Array


def discover_frozen(
    pool_features: Float[Array, "pool dim"],
    pool_labels: Int[Array, " pool"],
    target_features: Float[Array, "target dim"],
    kept: Collection[int],
    own: Collection[int],
    n_target_classes: int,
    n_init: int = 10,
    seed: int = 0,
) -> Int[Array, " target"]:
    """The cluster of every target image when the classes `kept` guide the clustering.

    There is a cluster for each kept class of the pool and for each category of the target that is none of them
    (docs/decisions.md, "clusters with a pool"): `own` are the classes of the pool that the target has too. Soft weights
    have no place here; they act in the losses of training.
    """
    rows = np.isin(pool_labels, list(kept))
    if not rows.any():
        raise DegenerateError("no class of the pool is kept", expected="at least one")
    n_clusters = len(set(kept) | set(own)) + n_target_classes - len(set(own))
    features = np.concatenate([pool_features[rows], target_features])
    labels = np.concatenate([pool_labels[rows], np.full(len(target_features), UNLABELED)])
    found = SemiSupKMeans(n_clusters, n_init=n_init, seed=seed).fit(features, labels)
    return np.asarray(found.labels_[rows.sum() :], dtype=np.int64)
