"""What labels would teach a linear model: the target seen through linear discriminants of the pool."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from justright.utils.errors import DegenerateError
from justright.utils.types import Array

SHRINKAGE = 0.1  # share of a plain sphere mixed into the scatter within classes, so that it can be inverted


def discriminant_features(
    pool: Float[Array, "pool dim"],
    labels: Int[Array, " pool"],
    target: Float[Array, "target dim"],
    sample_weight: Float[Array, " pool"] | None = None,
) -> Float[Array, "target seen"]:
    """The target along the directions that tell the pool's classes apart, each scaled by how well it does.

    With W the scatter within classes and B between them, both weighted and W shrunk by (1 - s) W + s tr(W) / dim I,
    the generalized eigenvectors B v = l W v with l > 0 give features sqrt(l / (1 + l)) v . (x - mean): directions that
    hold nothing but noise about the classes fade, as they do in a network trained to name them.
    """
    weight = np.ones(len(pool)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    is_used = weight > 0
    pool, labels, weight = pool[is_used].astype(np.float64), labels[is_used], weight[is_used]
    classes, position = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DegenerateError(f"{len(classes)} class of positive weight", expected="at least 2 to discriminate")
    share = weight / weight.sum()
    mean = share @ pool
    class_share = np.bincount(position, share)
    centroids = np.stack([share[position == c] @ pool[position == c] for c in range(len(classes))])
    centroids /= class_share[:, None]
    residual = (pool - centroids[position]) * np.sqrt(share)[:, None]
    within = residual.T @ residual
    sphere = np.trace(within) / len(within)
    if not sphere > 0:
        raise DegenerateError("every class consists of copies of one feature", expected="features that vary")
    within = (1 - SHRINKAGE) * within + SHRINKAGE * sphere * np.eye(len(within))
    # Whiten by W, then the discriminants are the singular vectors of the whitened centroids.
    spread, axes = np.linalg.eigh(within)
    whiten = axes / np.sqrt(spread)
    between = ((centroids - mean) @ whiten) * np.sqrt(class_share)[:, None]
    _, strength, directions = np.linalg.svd(between, full_matrices=False)
    is_real = strength > 1e-8 * strength[0]
    gain = strength[is_real] / np.sqrt(1 + strength[is_real] ** 2)
    return np.asarray(((target - mean) @ whiten @ directions[is_real].T) * gain)
