"""A selection just made: its plain record, and beside it the pool and what else was asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from justright.data.columns import NAME, names_column
from justright.features.table import FeatureTable
from justright.progress import Track, silent
from justright.runs.feature_pool import FeaturePool
from justright.runs.label_outlook import LabelOutlook
from justright.runs.saved_selection import CLASS_COLUMNS, STABILITY_COLUMNS, SavedSelection
from justright.selection import ClassWeights, Selector, Stability, stability


@dataclass(frozen=True)
class SelectionResult(SavedSelection):
    """The record of a selection together with the fitted selector, the pool it weighed, and what else was asked.

    Made by `SelectionResult.of`.
    """

    selector: Selector
    pool: FeaturePool
    stability: Stability | None = None
    outlook: LabelOutlook | None = None

    @classmethod
    def of(
        cls,
        name: str,
        selector: Selector,
        pool: FeaturePool,
        stability: Stability | None = None,
        outlook: LabelOutlook | None = None,
    ) -> SelectionResult:
        """The record of what a fitted selector, known under a name, decided about a pool."""
        about: dict[str, Any] = {"selector": name, "params": selector.get_params()}
        weights = selector.weights_
        about |= {key: value for key, value in weights.found.items() if math.isfinite(value)}
        images, classes = image_table(pool, weights), class_table(pool, weights, stability)
        return cls(images, classes, about, selector, pool, stability, outlook)

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        stable = self.stability
        return {
            "selector": self.name,
            "params": self.about["params"],
            "sources": self.source_rows(),
            "classes": self.classes.to_pylist(),
            "label_outlook": None if self.outlook is None else self.outlook.to_json(),
            "stability": stable and {"n_resamples": stable.n_resamples, "n_failed": stable.n_failed},
        }


def image_table(pool: FeaturePool, weights: ClassWeights) -> pa.Table:
    """One row an image. The reason is that of its class, unless images were weighed one by one."""
    if weights.images is None:
        weight, reason = weights.weight[pool.labels], names_column(weights.reason, pool.labels)
    else:
        weight, reason = weights.images.weight, pa.array(weights.images.reason).cast(NAME)
    return pool.index().append_column("weight", pa.array(weight)).append_column("reason", reason)


def class_table(pool: FeaturePool, weights: ClassWeights, stable: Stability | None = None) -> pa.Table:
    """One row a class: CLASS_COLUMNS, what the selector says beside them, and how stable that is."""
    datasets = [origin.dataset for origin in pool.origins]
    values = (weights.classes, datasets, pool.class_names, pool.counts, weights.weight, weights.reason)
    columns: dict[str, Any] = dict(zip(CLASS_COLUMNS, values, strict=True)) | dict(weights.columns)
    if stable is not None:
        columns |= {name: getattr(stable, name) for name in STABILITY_COLUMNS}
    return pa.table(columns)


def stability_of(
    selector: Selector,
    pool: FeaturePool,
    target: FeatureTable,
    n_resamples: int | None,
    seed: int,
    track: Track = silent,
) -> Stability | None:
    """How much the choice of a fitted selector owes to chance, given its clusters; None where nobody asks."""
    if not n_resamples:
        return None
    clusters, features = getattr(selector, "target_clusters_", None), (pool.features, pool.labels, target.features)
    return stability(selector, *features, target_clusters=clusters, n_resamples=n_resamples, seed=seed, track=track)
