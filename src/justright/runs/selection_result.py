"""A selection just made: its record, the pool and what else was asked; and how it becomes files."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from justright.data.columns import NAME, names_column
from justright.data.parquet import write_parquet
from justright.features.table import FeatureTable
from justright.runs.feature_pool import FeaturePool
from justright.runs.saved_selection import CLASS_COLUMNS, FORMAT, KEY, STABILITY_COLUMNS, SavedSelection, class_file
from justright.selection import ClassWeights, Selector, Stability, stability

KEPT = "kept: one of the target's own classes"


@dataclass(frozen=True)
class SelectionResult(SavedSelection):
    """The record of a selection together with the fitted selector, the pool it weighed, and what else was asked.

    Made by `SelectionResult.of`.
    """

    selector: Selector
    pool: FeaturePool
    stability: Stability | None = None

    @classmethod
    def of(
        cls,
        name: str,
        selector: Selector,
        pool: FeaturePool,
        stability: Stability | None = None,
    ) -> SelectionResult:
        """The record of what a fitted selector, known under a name, decided about a pool."""
        about: dict[str, Any] = {"selector": name, "params": selector.get_params()}
        weights = selector.weights_
        about |= {key: value for key, value in weights.found.items() if math.isfinite(value)}
        images, classes = image_table(pool, weights), class_table(pool, weights, stability)
        return cls(images, classes, about, selector, pool, stability)

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        stable = self.stability
        return {
            "selector": self.name,
            "params": self.about["params"],
            "sources": self.source_rows(),
            "classes": self.classes.to_pylist(),
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
) -> Stability | None:
    """How much the choice of a fitted selector owes to chance, given its clusters; None where nobody asks."""
    if not n_resamples:
        return None
    clusters, features = getattr(selector, "target_clusters_", None), (pool.features, pool.labels, target.features)
    return stability(selector, *features, target_clusters=clusters, n_resamples=n_resamples, seed=seed)


def save_selection(path: Path, result: SelectionResult, target: FeatureTable, kept: FeaturePool | None = None) -> Path:
    """Write both files and give the name of the second. Each is whole or not there.

    `kept` are images that nobody weighs: the target's own. They stand first and weigh 1.
    """
    n_kept = 0 if kept is None else len(kept.origins)
    about = {
        "format": FORMAT,
        "selector": result.name,
        "params": result.about["params"],
        "kept_classes": n_kept,
        "kept_images": 0 if kept is None else len(kept),
        "backbone": dict(result.pool.tables[0].header.backbone),
        "pool": [dict(table.header.data) for table in result.pool.tables],
        # what the labels and paths of the target hash to is left out: no trace of them may reach the file
        "target": {name: target.header.data.get(name) for name in ("images", "content")},
    } | dict(result.weights.found)
    said = {KEY: json.dumps(about).encode()}
    images, classes = result.images, result.classes
    if kept is not None:
        ones = ClassWeights(np.arange(n_kept), np.ones(n_kept), [KEPT] * n_kept)
        images = _behind(images, image_table(kept, ones), n_kept)
        classes = _behind(classes, class_table(kept, ones), n_kept)
    for file, table in ((path, images), (class_file(path), classes)):
        write_parquet(table.replace_schema_metadata(said), file)
    return class_file(path)


def _behind(table: pa.Table, first: pa.Table, n_classes: int) -> pa.Table:
    """The rows of `first`, then those of the table with their labels raised by so many classes."""
    place = table.schema.get_field_index("label")
    moved = pc.add(table["label"], pa.scalar(n_classes, table["label"].type))
    return pa.concat_tables([first, table.set_column(place, "label", moved)], promote_options="default")
