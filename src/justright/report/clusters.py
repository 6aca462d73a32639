"""Every cluster as a card: its central images, its outliers, how sure the method is, and the nearest known class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.discovery.predictions import Category, Predictions
from justright.geometry import ClassSums, directions, row_chunks
from justright.progress import Track, silent
from justright.report.elements import Name, Table, Values, optional, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.review_part import COLUMNS as REVIEW_COLUMNS
from justright.report.review_part import review_cells
from justright.review.findings import Review
from justright.runs.run_folder import RunFolder
from justright.types import Array

MOST_CLUSTERS = 3000  # more cards than this are cut: the largest stay
# central images, outliers, pixels a side, columns: the more clusters, the less of each, so that all are there
LAYOUTS = ((18, 4, 64, 6), (12, 4, 48, 6), (8, 2, 40, 8), (6, 2, 32, 6), (4, 1, 28, 4), (3, 1, 24, 3))
COLUMNS = ("picture", "cluster", "images", "confidence %", "nearest known class", "similarity", "neither", "outliers")
N_NEITHER = 24
LONGEST_ALT = 60


@dataclass(frozen=True, eq=False)
class ClusterView:
    """A category and its images."""

    number: int  # of the category in the predictions
    category: Category  # its name and kind
    rows: Int[Array, " rows"]  # of the target, from the most to the least central; without those called neither
    n_neither: int  # how many images were called neither
    confidence: float  # the mean over its images
    nearest: str | None  # the known class whose centroid has the highest cosine to its own; None without features
    similarity: float | None  # that cosine

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
    """Every category that has an image, in the order of the categories. Without features rows go by confidence."""
    centrality = predictions.confidence.astype(np.float64)
    nearest: dict[int, tuple[str, float]] = {}
    if features is not None and len(predictions):
        sums = ClassSums().update(features, predictions.cluster)
        unit = directions(sums.centroids())
        place, cosines = np.searchsorted(sums.classes, predictions.cluster), []
        for rows in row_chunks(features):  # a block in memory at a time
            own, place = place[: len(rows)], place[len(rows) :]
            cosines.append(np.einsum("id,id->i", directions(rows), unit[own]))
        centrality = np.concatenate(cosines)
        nearest = _nearest_known(predictions, sums.classes, unit)
    by_cluster = np.split(np.lexsort((-centrality, predictions.cluster)), np.cumsum(predictions.sizes))
    views = []
    for number, (category, rows) in enumerate(zip(predictions.categories, by_cluster[:-1], strict=True)):
        if len(rows):
            is_neither, confidence = predictions.is_neither[rows], float(predictions.confidence[rows].mean())
            seen = rows[~is_neither], int(is_neither.sum()), confidence
            views.append(ClusterView(number, category, *seen, *nearest.get(number, (None, None))))
    return views


def cluster_cards(
    run: RunFolder, page_images: PageImages, track: Track = silent, review: Review | None = None
) -> Values:
    """Discovered clusters, known classes, and what was called neither; how central an image is goes by `source`."""
    predictions = run.predictions
    features, source = _features(run, len(predictions))
    views = look_at_clusters(predictions, features)
    groups = {kind: [view for view in views if view.category.kind == kind] for kind in ("discovered", "known")}
    shares = {"discovered": len(groups["discovered"]) / max(len(views), 1), "known": 1.0}
    cards = {
        kind: {
            "cards": _cards(group, page_images, shares[kind], track, review) if group else None,
            "n_clusters": len(group),
            "n_images": sum(len(view.rows) for view in group),
        }
        for kind, group in groups.items()
    }
    neither = np.flatnonzero(predictions.is_neither)
    least_sure = neither[np.argsort(predictions.confidence[neither], kind="stable")][:N_NEITHER]
    order = SheetOrder(least_sure, LAYOUTS[0][2], 8, "images that look like none of the categories")
    return {
        **cards,
        "source": source,
        "n_empty": len(predictions.categories) - len(views),
        "n_neither": len(neither),
        "neither": page_images.sheet(order) if len(neither) else None,
        "page_images": page_images,
    }


def _cards(
    views: Sequence[ClusterView], page_images: PageImages, share: float, track: Track, review: Review | None
) -> Table:
    shown = sorted(views, key=lambda view: -len(view.rows))[:MOST_CLUSTERS]
    orders = page_images.richest([_orders(shown, *layout) for layout in LAYOUTS], share)
    sheets = list(page_images.sheets(orders, track, "sheets of clusters"))
    rows = [
        (
            central,
            Name(view.category.name),
            *(() if review is None else review_cells(review.clusters.get(view.number), view.n_images)),
            view.n_images,
            100 * view.confidence,
            Name(view.nearest) if view.nearest else None,
            view.similarity,
            view.n_neither or None,
            edge,
        )
        for view, central, edge in zip(shown, sheets[::2], sheets[1::2], strict=True)
    ]
    # what people said comes right after picture and name
    return Table(COLUMNS if review is None else (*COLUMNS[:2], *REVIEW_COLUMNS, *COLUMNS[2:]), rows)


def _orders(
    views: Sequence[ClusterView], n_central: int, n_outlying: int, pixels: int, columns: int
) -> list[SheetOrder]:
    """Two sheets a cluster: its middle, and its edge."""
    return [
        SheetOrder(rows, pixels, columns, f"{what} of {short(view.category.name, LONGEST_ALT)}")
        for view in views
        for what, rows in zip(("central images", "outliers"), view.ends(n_central, n_outlying), strict=True)
    ]


def _nearest_known(
    predictions: Predictions, clusters: Int[Array, " clusters"], unit: Float[Array, "clusters dim"]
) -> dict[int, tuple[str, float]]:
    """For each cluster the name of the known one, other than itself, with the nearest centroid, and the cosine."""
    known = np.array([predictions.categories[cluster].kind == "known" for cluster in clusters.tolist()])
    if not known.any():
        return {}
    cosine = unit @ unit[known].T
    cosine[np.flatnonzero(known), np.arange(int(known.sum()))] = -np.inf
    best = clusters[known][cosine.argmax(axis=1)]
    return {
        int(cluster): (predictions.categories[other].name, float(similarity))
        for cluster, other, similarity in zip(clusters, best, cosine.max(axis=1), strict=True)
        if np.isfinite(similarity)
    }


def _features(run: RunFolder, n_images: int) -> tuple[Float[Array, "target dim"] | None, str]:
    """What tells how central an image is, and where it comes from: "after training", "before training" or nowhere."""
    tuned, frozen = optional(lambda: run.tuned), optional(lambda: run.frozen)
    for features, source in ((tuned, "after training"), (frozen and frozen[1].features, "before training")):
        if features is not None and features.ndim == 2 and len(features) == n_images:
            return features, source
    return None, ""
