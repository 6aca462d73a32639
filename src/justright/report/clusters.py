"""What lies in each cluster: its middle, its edge, how sure the method is, and which known class is nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.discovery.predictions import Category, Predictions
from justright.geometry import ClassSums, row_chunks
from justright.types import Array


@dataclass(frozen=True, eq=False)
class ClusterView:
    """A category and its images, rows of the target from the most to the least central; images called neither apart.

    number is that of the category in the predictions, confidence the mean over its images, nearest the known class
    whose images are nearest by the cosine of their centroids, which is `similarity`. Without features rows go by
    confidence, and there is no nearest class.
    """

    number: int
    category: Category
    rows: Int[Array, " rows"]
    n_neither: int
    confidence: float
    nearest: str | None
    similarity: float | None

    @property
    def n_images(self) -> int:
        """All images of the category, those called neither too."""
        return len(self.rows) + self.n_neither

    def ends(self, n_central: int, n_outlying: int) -> tuple[Int[Array, " central"], Int[Array, " outlying"]]:
        """The images in the middle, and those at the edge with the farthest first; at most a quarter is edge."""
        n_edge = min(n_outlying, len(self.rows) // 4)
        n_middle = min(n_central, len(self.rows) - n_edge)
        return self.rows[:n_middle], self.rows[len(self.rows) - n_edge :][::-1]


def look_at_clusters(predictions: Predictions, features: Float[Array, "target dim"] | None) -> list[ClusterView]:
    """Every category that has an image, in the order of the categories."""
    centrality = predictions.confidence.astype(np.float64)
    nearest: dict[int, tuple[int, float]] = {}
    if features is not None and len(predictions):
        sums = ClassSums().update(features, predictions.cluster)
        unit = _unit(sums.centroids())
        centrality = _own_cosine(features, np.searchsorted(sums.classes, predictions.cluster), unit)
        nearest = _nearest_known(predictions, sums.classes, unit)
    order = np.lexsort((-centrality, predictions.cluster))
    ends = np.cumsum(predictions.sizes)
    views = []
    for number, category in enumerate(predictions.categories):
        rows = order[ends[number] - predictions.sizes[number] : ends[number]]
        if len(rows):
            known, similarity = nearest.get(number, (None, None))
            views.append(
                ClusterView(
                    number=number,
                    category=category,
                    rows=rows[~predictions.is_neither[rows]],
                    n_neither=int(predictions.is_neither[rows].sum()),
                    confidence=float(predictions.confidence[rows].mean()),
                    nearest=None if known is None else predictions.categories[known].name,
                    similarity=similarity,
                )
            )
    return views


def _nearest_known(
    predictions: Predictions, clusters: Int[Array, " clusters"], unit: Float[Array, "clusters dim"]
) -> dict[int, tuple[int, float]]:
    """For each cluster the known one, other than itself, with the nearest centroid, and the cosine."""
    known = np.array([predictions.categories[cluster].kind == "known" for cluster in clusters.tolist()])
    if known.sum() < 1:
        return {}
    cosine = unit @ unit[known].T
    cosine[np.flatnonzero(known), np.arange(int(known.sum()))] = -np.inf
    best = cosine.argmax(axis=1)
    value = cosine[np.arange(len(unit)), best]
    names = clusters[known][best]
    return {
        int(cluster): (int(name), float(similarity))
        for cluster, name, similarity in zip(clusters, names, value, strict=True)
        if np.isfinite(similarity)
    }


def _own_cosine(
    features: Float[Array, "target dim"], place: Int[Array, " target"], unit: Float[Array, "clusters dim"]
) -> Float[Array, " target"]:
    """The cosine of each image to the centroid of its own cluster, a block in memory at a time."""
    parts, start = [], 0
    for rows in row_chunks(features):
        own = unit[place[start : start + len(rows)]]
        parts.append(np.einsum("id,id->i", _unit(rows), own))
        start += len(rows)
    return np.concatenate(parts)


def _unit(rows: Float[Array, "rows dim"]) -> Float[Array, "rows dim"]:
    """Rows of length 1; one of zeros stays, a picture book need not refuse it."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
