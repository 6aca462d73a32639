"""What a selection decided about every class of a pool, as one table, and summed up by data set."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float

from justright.features.table import FeatureTable
from justright.progress import Track, silent
from justright.runs.feature_pool import FeaturePool
from justright.runs.label_outlook import LabelOutlook
from justright.selection import Selector, Stability, stability
from justright.types import Array


@dataclass(frozen=True)
class SourceRow:
    """A data set of the pool: how much of it is kept, and how close its classes are to the target."""

    dataset: str
    n_classes: int
    n_kept_classes: int
    n_images: int
    n_kept_images: int
    mean_weight: float
    closest: float | None
    median: float | None
    farthest: float | None


@dataclass(frozen=True)
class SelectionResult:
    """A fitted selector, the pool it weighed, and what else was asked about it."""

    name: str
    selector: Selector
    pool: FeaturePool
    stability: Stability | None = None
    outlook: LabelOutlook | None = None

    @property
    def measure(self) -> str:
        """What the selector compared classes by: "similarity", "distance", or nothing."""
        if hasattr(self.selector, "class_similarity_"):
            return "similarity"
        return "distance" if hasattr(self.selector, "class_distance_") else ""

    @property
    def closeness(self) -> Float[Array, " classes"] | None:
        """The similarity or distance of each class to the target."""
        return getattr(self.selector, f"class_{self.measure}_") if self.measure else None

    @cached_property
    def sample_weight(self) -> Float[Array, " images"]:
        """The weight of each image of the pool."""
        return self.selector.sample_weight(self.pool.labels)

    @cached_property
    def class_table(self) -> pa.Table:
        """One row a class: label, dataset, class_name, n_images, weight, reason, and what led there.

        `similarity` or `distance`, `bin` and `rank` as the selector has them; `kept_share` and `weight_std`, over
        resamples, if stability was asked for.
        """
        pool, selector = self.pool, self.selector
        columns: dict[str, Any] = {
            "label": selector.classes_,
            "dataset": [origin.dataset for origin in pool.origins],
            "class_name": pool.class_names,
            "n_images": pool.counts,
            "weight": selector.class_weight_,
            "reason": selector.reason_,
        }
        if self.measure:
            columns[self.measure] = self.closeness
        columns |= {name: getattr(selector, f"{name}_") for name in ("bin", "rank") if hasattr(selector, f"{name}_")}
        if self.stability is not None:
            columns |= {"kept_share": self.stability.kept_share, "weight_std": self.stability.weight_std}
        return pa.table(columns)

    def source_rows(self) -> list[SourceRow]:
        """One row a data set, in the order of the pool, and a last one for all if there are several."""
        of_class = np.array([origin.dataset for origin in self.pool.origins], dtype=object)
        datasets = list(dict.fromkeys(of_class.tolist()))
        parts = [(dataset, of_class == dataset) for dataset in datasets]
        if len(datasets) > 1:
            parts.append(("all", np.ones(len(of_class), dtype=bool)))
        return [self._source_row(dataset, is_member) for dataset, is_member in parts]

    def source_columns(self) -> list[str]:
        """The head of the table by data set."""
        columns = ["data set", "classes", "kept", "images", "kept images", "mean weight"]
        if not self.measure:
            return columns
        first, last = ("most", "least") if self.measure == "similarity" else ("least", "most")
        return [*columns, f"{first} {self.measure}", "median", last]

    def source_cells(self) -> list[tuple[object, ...]]:
        """The rows under `source_columns`."""
        n = len(self.source_columns())
        return [astuple(row)[:n] for row in self.source_rows()]

    def _source_row(self, dataset: str, is_member: Bool[Array, " classes"]) -> SourceRow:
        weight = self.sample_weight[is_member[self.pool.labels]]
        closeness = None if self.closeness is None else self.closeness[is_member]
        ends = (None, None, None) if closeness is None else np.quantile(closeness, [0, 0.5, 1]).tolist()
        low, median, high = ends
        is_similarity = self.measure == "similarity"
        return SourceRow(
            dataset=dataset,
            n_classes=int(is_member.sum()),
            n_kept_classes=int((self.selector.class_weight_[is_member] > 0).sum()),
            n_images=len(weight),
            n_kept_images=int((weight > 0).sum()),
            mean_weight=float(weight.mean()),
            closest=high if is_similarity else low,
            median=median,
            farthest=low if is_similarity else high,
        )

    def summary(self) -> str:
        """The outcome in a line."""
        n_kept, n_classes = len(self.selector.selected_classes_), len(self.selector.classes_)
        n_images = int((self.sample_weight > 0).sum())
        return (
            f"{self.name}: {n_kept:,} of {n_classes:,} classes and {n_images:,} of {len(self.pool):,} images kept, "
            f"mean weight {self.sample_weight.mean():.3g}"
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return {
            "selector": self.name,
            "params": self.selector.get_params(),
            "sources": [asdict(row) for row in self.source_rows()],
            "classes": self.class_table.to_pylist(),
            "label_outlook": None if self.outlook is None else self.outlook.to_json(),
            "stability": None if self.stability is None else {
                "n_resamples": self.stability.n_resamples, "n_failed": self.stability.n_failed
            },
        }  # fmt: skip


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
    return stability(
        selector,
        pool.features,
        pool.labels,
        target.features,
        target_clusters=getattr(selector, "target_clusters_", None),
        n_resamples=n_resamples,
        seed=seed,
        track=track,
    )
