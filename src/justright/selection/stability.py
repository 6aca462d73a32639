"""How much a selection depends on chance: the same selector over resamples of the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.selection.base import Selector
from justright.selection.shards import ArrayLike, PoolFeatures, TargetFeatures
from justright.utils.context import track
from justright.utils.errors import DegenerateError, JustrightError
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
    over: str = "both",
    seed: int = 0,
) -> Stability:
    """Compute weights repeatedly: on bootstraps of the target, with other random splits, or both.

    over  "target": draw as many target images as there are, with replacement; "splits": keep the target, change the
          selector's seed; "both"

    What a resample does not change is computed once: cosines for Beta, centroids and clusters for Bins and Cui. Pass
    `target_clusters_` of a fitted selector as `target_clusters` to skip k-means as well.
    """
    if over not in ("both", "target", "splits"):
        raise JustrightError(f"over={over!r}", expected="'both', 'target' or 'splits'")
    selector.check()
    pool = PoolFeatures([(pool_features, pool_labels)])
    weigh = selector.resampler(pool, TargetFeatures([target_features], clusters=target_clusters))
    n_target = len(to_numpy(target_features))
    weights: list[Float[Array, " classes"]] = []
    n_failed = 0
    for resample in track(range(n_resamples), n_resamples, "resamples"):
        draws = generator(seed, "stability", resample)
        rows = np.arange(n_target) if over == "splits" else np.sort(draws.integers(n_target, size=n_target))
        new_seed = int(draws.integers(2**31)) if over != "target" else int(getattr(selector, "seed", 0))
        try:
            weights.append(weigh(rows, new_seed))
        except DegenerateError:
            n_failed += 1
    if not weights:
        problem = f"nothing was selected in any of {n_resamples} resamples"
        raise DegenerateError(problem, expected="a selector that fits this target")
    drawn, classes = np.stack(weights), np.unique(to_numpy(pool_labels))
    kept_share = (drawn > 0).mean(axis=0)
    return Stability(classes, kept_share, drawn.mean(axis=0), drawn.std(axis=0), len(weights), n_failed)
