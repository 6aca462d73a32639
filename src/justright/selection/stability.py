"""How much a selection depends on chance: the same selector over resamples of the target."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.selection.base import Selector
from justright.selection.shards import ArrayLike
from justright.utils.context import track
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.types import Array
from justright.utils.validation import to_numpy


@dataclass(frozen=True)
class Stability:
    """Weights of each class over resamples, aligned with `classes`."""

    classes: Int[Array, " classes"]
    kept_share: Float[Array, " classes"]  # share of resamples in which the class weighed more than 0
    weight_mean: Float[Array, " classes"]
    weight_std: Float[Array, " classes"]  # the standard deviation of the weight
    n_resamples: int  # resamples with weights
    n_failed: int  # resamples in which nothing was selected


def stability(
    selector: Selector,
    pool_features: ArrayLike,
    pool_labels: ArrayLike,
    target_features: ArrayLike,
    *,
    target_clusters: ArrayLike | None = None,
    n_resamples: int = 20,
    seed: int = 0,
) -> Stability:
    """Fit copies of the selector on bootstraps of the target: as many images as there are, drawn with replacement.

    Each copy has a seed of its own. Pass `target_clusters_` of a fitted selector as `target_clusters` to skip k-means.
    """
    pool, labels, target = map(to_numpy, (pool_features, pool_labels, target_features))
    clusters = None if target_clusters is None else to_numpy(target_clusters)
    weights: list[Float[Array, " classes"]] = []
    for resample in track(range(n_resamples), n_resamples, "resamples"):
        draws = generator(seed, "stability", resample)
        rows = np.sort(draws.integers(len(target), size=len(target)))
        seeded = {"seed": int(draws.integers(2**31))} if "seed" in selector.get_params() else {}
        other = copy.copy(selector).set_params(**seeded)
        try:
            other.fit(pool, labels, target[rows], None if clusters is None else clusters[rows], quiet=True)
        except DegenerateError:
            continue
        weights.append(other.class_weight_)
    if not weights:
        problem = f"nothing was selected in any of {n_resamples} resamples"
        raise DegenerateError(problem, expected="a selector that fits this target")
    drawn, n_failed = np.stack(weights), n_resamples - len(weights)
    kept_share = (drawn > 0).mean(axis=0)
    return Stability(np.unique(labels), kept_share, drawn.mean(axis=0), drawn.std(axis=0), len(weights), n_failed)
