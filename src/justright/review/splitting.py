"""Cluster again inside one cluster. What comes out goes into the log, so reading the log computes nothing."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from justright.clustering import SemiSupKMeans
from justright.errors import DegenerateError
from justright.review.actions import Part
from justright.types import Array

RESTARTS = 4


def split(
    cluster: int, rows: Int[Array, " rows"], features: Float[Array, "images dim"] | None, n_parts: int, seed: int
) -> Part:
    """k-means on the features of these images; the largest part stays in the cluster, the others leave it."""
    if features is None:
        raise DegenerateError(
            "this run has no features", expected="tuned.npy in the run", advice="move the images by hand"
        )
    if len(rows) < n_parts:
        raise DegenerateError(f"{len(rows)} images cannot make {n_parts} clusters")
    x = np.asarray(features[rows], dtype=np.float32)
    labels = SemiSupKMeans(n_parts, n_init=RESTARTS, seed=seed).fit(x).labels_
    by_size = np.argsort(-np.bincount(labels, minlength=n_parts), kind="stable")
    return Part(cluster=cluster, parts=[rows[labels == part].tolist() for part in by_size[1:]])
