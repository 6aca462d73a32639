"""Every cluster as a card: its central images, its outliers, how sure the method is, and what is nearest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from justright.discovery.predictions import Predictions
from justright.progress import Track, silent
from justright.report.cluster_views import ClusterView
from justright.report.elements import Name, Table, Values, Words, join, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.review_part import COLUMNS as REVIEW_COLUMNS
from justright.report.review_part import review_cells
from justright.review.findings import Review

MOST_CLUSTERS = 3000  # more cards than this are cut: those stay where most images are likely wrong
# central images, outliers, pixels a side, columns: the more clusters, the less of each, so that all are there
LAYOUTS = ((18, 4, 64, 6), (12, 4, 48, 6), (8, 2, 40, 8), (6, 2, 32, 6), (4, 1, 28, 4), (3, 1, 24, 3))
COLUMNS = ("picture", "cluster", "images", "confidence %", "likely wrong", "nearest", "apart", "neither", "outliers")
N_NEITHER = 24
LONGEST_ALT = 60


def cluster_cards(
    predictions: Predictions,
    views: Sequence[ClusterView],
    page_images: PageImages,
    track: Track = silent,
    review: Review | None = None,
) -> Values:
    """Discovered clusters, known classes, and what was called neither, in the order of the views."""
    groups = {kind: [view for view in views if view.category.kind == kind] for kind in ("discovered", "known")}
    shares = {"discovered": len(groups["discovered"]) / max(len(views), 1), "known": 1.0}
    cards = {
        kind: {
            "cards": _cards(group, page_images, shares[kind], track, review) if group else None,
            "n_clusters": len(group),
        }
        for kind, group in groups.items()
    }
    neither = np.flatnonzero(predictions.is_neither)
    least_sure = neither[np.argsort(predictions.confidence[neither], kind="stable")][:N_NEITHER]
    order = SheetOrder(least_sure, LAYOUTS[0][2], 8, "images that look like none of the categories")
    return {
        **cards,
        "n_empty": len(predictions.categories) - len(views),
        "n_neither": len(neither),
        "neither": page_images.sheet(order) if len(neither) else None,
        "page_images": page_images,
    }


def nearest_words(view: ClusterView) -> Words:
    """The line that helps to name a cluster: the nearest known class, the nearest other cluster, and their cosines."""
    sides = ((view.near.known, "known class "), (view.near.cluster, "new cluster "))
    return join(", ", [(kind, Name(side[0]), f" {side[1]:.2f}") for side, kind in sides if side])


def _cards(
    views: Sequence[ClusterView], page_images: PageImages, share: float, track: Track, review: Review | None
) -> Table:
    shown = views[:MOST_CLUSTERS]
    orders = page_images.richest([_orders(shown, *layout) for layout in LAYOUTS], share)
    sheets = list(page_images.sheets(orders, track, "sheets of clusters"))
    rows = [
        (
            central,
            Name(view.category.name),
            *(() if review is None else review_cells(review.clusters.get(view.number), view.n_images)),
            view.n_images,
            100 * view.confidence,
            round(view.n_likely_wrong),
            nearest_words(view) or None,
            view.near.apart,
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
