"""Every category of a run as a person looks at it: its images from the middle to the edge, and what is near it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.discovery.doubts import Doubt
from justright.discovery.predictions import Category, Predictions
from justright.geometry import ClassSums, row_chunks, unit_rows
from justright.report.elements import optional
from justright.runs.run_folder import RunFolder
from justright.utils.types import Array


@dataclass(frozen=True)
class Surroundings:
    """What is near a category, which helps to name it; None where there is no such thing, or no features."""

    known: tuple[str, float] | None = None  # the known class with the nearest centroid, other than itself; the cosine
    cluster: tuple[str, float] | None = None  # the same among discovered clusters
    apart: float | None = None  # mean cosine of its images to its own centroid, less that to the nearest other one


@dataclass(frozen=True, eq=False)
class ClusterView:
    """A category and its images."""

    number: int  # of the category in the predictions
    category: Category  # its name and kind
    rows: Int[Array, " rows"]  # of the target, from the most to the least central; without those called neither
    n_neither: int  # how many images were called neither
    purity: float | None  # the mean confidence of its images that nobody labeled; None where there are none
    n_likely_wrong: float  # how many images are expected not to be of the category: the sum of one less the confidence
    near: Surroundings = Surroundings()
    doubt: Doubt | None = None

    @property
    def n_images(self) -> int:
        """All images of the category, those called neither too."""
        return len(self.rows) + self.n_neither

    def ends(self, n_central: int, n_outlying: int) -> tuple[Int[Array, " central"], Int[Array, " outlying"]]:
        """The images in the middle, and those at the edge with the farthest first; at most a quarter is edge."""
        n_edge = min(n_outlying, len(self.rows) // 4)
        n_middle = min(n_central, len(self.rows) - n_edge)
        return self.rows[:n_middle], self.rows[len(self.rows) - n_edge :][::-1]


def look_at_clusters(
    predictions: Predictions, features: Float[Array, "target dim"] | None, doubts: Sequence[Doubt] = ()
) -> list[ClusterView]:
    """Every category that has an image, the one with most images likely wrong first. Without features rows go by
    confidence, and nothing is known to be near."""
    centrality = predictions.confidence.astype(np.float64)
    near: dict[int, Surroundings] = {}
    if features is not None and len(predictions):
        sums, of_directions = ClassSums().update(features, predictions.cluster), ClassSums()
        unit = unit_rows(sums.centroids())
        place, cosines = np.searchsorted(sums.classes, predictions.cluster), []
        for block in row_chunks(features):  # a block in memory at a time
            own, place = place[: len(block)], place[len(block) :]
            rows = unit_rows(block)
            of_directions.update(rows, own)
            cosines.append(np.einsum("id,id->i", rows, unit[own]))
        centrality = np.concatenate(cosines)
        categories = [predictions.categories[cluster] for cluster in sums.classes.tolist()]
        found = _surroundings(categories, unit, of_directions.centroids())
        near = dict(zip(sums.classes.tolist(), found, strict=True))
    by_cluster = np.split(np.lexsort((-centrality, predictions.cluster)), np.cumsum(predictions.sizes))
    views, by_category = [], {doubt.category: doubt for doubt in doubts}
    for number, (category, rows) in enumerate(zip(predictions.categories, by_cluster[:-1], strict=True)):
        if len(rows):
            is_neither, is_open = predictions.is_neither[rows], ~predictions.is_given[rows]
            purity = float(predictions.purity[number]) if is_open.any() else None
            wrong = float((1 - predictions.confidence[rows[is_open]]).sum())
            about = near.get(number, Surroundings()), by_category.get(number)
            views.append(ClusterView(number, category, rows[~is_neither], int(is_neither.sum()), purity, wrong, *about))
    return sorted(views, key=lambda view: -view.n_likely_wrong)


def _surroundings(
    categories: Sequence[Category], unit: Float[Array, "clusters dim"], mean_direction: Float[Array, "clusters dim"]
) -> list[Surroundings]:
    """The surroundings of each category, from directions of centroids and mean directions of images."""
    is_known = np.array([category.kind == "known" for category in categories])
    found = []
    for place in range(len(unit)):  # a row at a time: all pairs of many thousands would fill the memory
        is_other = np.arange(len(unit)) != place
        cosine = unit @ unit[place]
        of_images = unit @ mean_direction[place]  # the mean over cosines is the cosine of the mean, for directions
        apart = float(of_images[place] - of_images[is_other].max()) if is_other.any() else None
        nearest: dict[str, tuple[str, float]] = {}
        for name, side in (("known", is_known), ("cluster", ~is_known)):
            if len(places := np.flatnonzero(is_other & side)):
                best = places[cosine[places].argmax()]
                nearest[name] = categories[best].name, float(cosine[best])
        found.append(Surroundings(**nearest, apart=apart))
    return found


def target_features(run: RunFolder) -> tuple[Float[Array, "target dim"] | None, str]:
    """What tells how central an image is, and where it comes from: "after training", "before training" or nowhere."""
    tuned, frozen = optional(lambda: run.tuned), optional(lambda: run.frozen)
    for features, source in ((tuned, "after training"), (frozen and frozen[1].features, "before training")):
        if features is not None and features.ndim == 2 and len(features) == len(run.predictions):
            return features, source
    return None, ""
