"""Every cluster as a card: a sheet of its most central images, its outliers, how sure, and the nearest known class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from justright.discovery.predictions import Predictions
from justright.progress import Track, silent
from justright.report.clusters import ClusterView, look_at_clusters
from justright.report.names import named, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.page_shell import cards, folded, note
from justright.report.reading import Missing, attempt
from justright.report.review_part import COLUMNS as REVIEW_COLUMNS
from justright.report.review_part import made_part, review_cells
from justright.review.findings import Review
from justright.runs.run_folder import RunFolder
from justright.types import Array

MOST_CLUSTERS = 3000
"""More cards than this are cut: the largest stay."""


@dataclass(frozen=True)
class Layout:
    """How much of a cluster is shown: the more clusters, the less of each, so that all are there."""

    n_central: int
    n_outlying: int
    pixels: int
    columns: int


LAYOUTS = (
    Layout(18, 4, 64, 6),
    Layout(12, 4, 48, 6),
    Layout(8, 2, 40, 8),
    Layout(6, 2, 32, 6),
    Layout(4, 1, 28, 4),
    Layout(3, 1, 24, 3),
)
COLUMNS = ("picture", "cluster", "images", "confidence %", "nearest known class", "similarity", "neither", "outliers")
LONGEST_ALT = 60


def cluster_sheets(
    run: RunFolder, predictions: Predictions, thumbs: PageImages, track: Track = silent, review: Review | None = None
) -> str:
    """Discovered clusters first, then known classes, what the review made of them, and what was called neither."""
    features, remark = _features(run, len(predictions))
    views = look_at_clusters(predictions, features)
    discovered = [view for view in views if view.category.kind == "discovered"]
    known = [view for view in views if view.category.kind == "known"]
    n_empty = len(predictions.categories) - len(views)
    lead = (
        f"<p>{len(discovered):,} discovered clusters hold {_total(discovered):,} images; {len(known):,} known classes "
        f"hold {_total(known):,}. {int(predictions.is_neither.sum()):,} images look like none of them."
        f"{f' {n_empty:,} categories have no image.' if n_empty else ''}</p>"
    )
    parts = [lead, note(remark)]
    if discovered:
        share = len(discovered) / len(views)
        parts.append(_cards("discovered", discovered, thumbs, share, track, "Search clusters", review))
    if known:
        shown = _cards("known", known, thumbs, 1.0, track, "Search known classes", review)
        parts.append(folded(f"Known classes: {len(known):,}", shown))
    if review is not None:
        parts.append(made_part(review))
    if predictions.is_neither.any():
        parts.append(_neither(predictions, thumbs))
    return "\n".join([*parts, *map(note, thumbs.remarks())])


def _cards(
    name: str,
    views: Sequence[ClusterView],
    thumbs: PageImages,
    share: float,
    track: Track,
    search: str,
    review: Review | None,
) -> str:
    views = sorted(views, key=lambda view: -len(view.rows))
    shown = views[:MOST_CLUSTERS]
    orders = thumbs.richest([_orders(shown, layout) for layout in LAYOUTS], share)
    sheets = list(thumbs.sheets(orders, track, "sheets of clusters"))
    rows = [
        (
            central or None,
            named(view.category.name),
            *(() if review is None else review_cells(review.clusters.get(view.number), view.n_images)),
            view.n_images,
            100 * view.confidence,
            named(view.nearest) if view.nearest else None,
            view.similarity,
            view.n_neither or None,
            edge or None,
        )
        for view, central, edge in zip(shown, sheets[::2], sheets[1::2], strict=True)
    ]
    # what people said comes right after picture and name
    columns = COLUMNS if review is None else (*COLUMNS[:2], *REVIEW_COLUMNS, *COLUMNS[2:])
    left = f"The {len(views) - len(shown):,} smallest are left out here." if len(shown) < len(views) else ""
    return cards(name, columns, rows, search) + (note(left) if left else "")


def _orders(views: Sequence[ClusterView], layout: Layout) -> list[SheetOrder]:
    """Two sheets a cluster: its middle, and its edge."""
    orders = []
    for view in views:
        what = short(view.category.name, LONGEST_ALT)
        middle, edge = view.ends(layout.n_central, layout.n_outlying)
        orders += [
            SheetOrder(middle, layout.pixels, layout.columns, f"central images of {what}"),
            SheetOrder(edge, layout.pixels, layout.columns, f"outliers of {what}"),
        ]
    return orders


def _neither(predictions: Predictions, thumbs: PageImages) -> str:
    rows = np.flatnonzero(predictions.is_neither)
    rows = rows[np.argsort(predictions.confidence[rows], kind="stable")]
    sheet = thumbs.sheet(SheetOrder(rows[:24], LAYOUTS[0].pixels, 8, "images that look like none of the categories"))
    said = f"<h3>Like none of the categories: {len(rows):,} images</h3>"
    return said + (f"<div class=sheet>{sheet}</div>" if sheet else "")


def _features(run: RunFolder, n_images: int) -> tuple[Float[Array, "target dim"] | None, str]:
    """What tells how central an image is, and a sentence about it."""
    meaning = "Central and outlying go by the cosine to the centroid of the cluster, the nearest known class by that of"
    tuned = attempt(lambda: run.tuned if (run.path / "tuned.npy").exists() else None, "")
    if not isinstance(tuned, Missing) and tuned.ndim == 2 and len(tuned) == n_images:
        return tuned, f"{meaning} both centroids, after training."
    frozen = attempt(lambda: run.frozen, "")
    if not isinstance(frozen, Missing) and frozen[1].features.ndim == 2 and len(frozen[1]) == n_images:
        return frozen[1].features, f"{meaning} both centroids, before training: features after it are not there."
    return None, "There are no features of the target: images go by confidence, and no class is known to be near."


def _total(views: Sequence[ClusterView]) -> int:
    return sum(len(view.rows) for view in views)
