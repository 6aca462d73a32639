"""Every cluster as a card: its central images, its outliers, how sure the method is, and what is nearest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from justright.discovery.predictions import Predictions
from justright.geometry.rows import evenly_spaced
from justright.report.cluster_views import ClusterView
from justright.report.elements import Name, Table, Values, Words, join, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.review_part import COLUMNS as REVIEW_COLUMNS
from justright.report.review_part import review_cells
from justright.review.findings import Review

MOST_CLUSTERS = 3000  # more cards than this are cut: those stay where most images are likely wrong
# central images, outliers, pixels a side, columns: the more clusters, the less of each, so that all are there
LAYOUTS = ((18, 4, 64, 6), (12, 4, 48, 6), (8, 2, 40, 8), (6, 2, 32, 6), (4, 1, 28, 4), (3, 1, 24, 3))
COLUMNS = ("picture", "cluster", "images", "confidence %", "nearest", "apart", "neither", "outliers")
# where confidences are probabilities
CALIBRATED = (*COLUMNS[:3], "expected purity %", "likely wrong", *COLUMNS[4:7], "doubt", "decided by", "outliers")
N_DECIDING = 8
N_NEITHER = 24
LONGEST_ALT = 60


def cluster_cards(
    predictions: Predictions,
    views: Sequence[ClusterView],
    page_images: PageImages,
    review: Review | None = None,
    is_calibrated: bool = False,
) -> Values:
    """Discovered clusters, known classes, and what was called neither, in the order of the views."""
    groups = {kind: [view for view in views if view.category.kind == kind] for kind in ("discovered", "known")}
    shares = {"discovered": len(groups["discovered"]) / max(len(views), 1), "known": 1.0}
    cards = {
        kind: {
            "cards": _cards(group, predictions, page_images, shares[kind], review, is_calibrated) if group else None,
            "n_clusters": len(group),
        }
        for kind, group in groups.items()
    }
    neither = np.flatnonzero(predictions.is_neither)
    least_sure = neither[np.argsort(predictions.confidence[neither], kind="stable")][:N_NEITHER]
    order = SheetOrder(least_sure, LAYOUTS[0][2], 8, "images that look like none of the categories")
    return {
        **cards,
        "is_calibrated": is_calibrated,
        "has_doubts": any(view.doubt for view in views),
        "n_empty": len(predictions.categories) - len(views),
        "n_neither": len(neither),
        "neither": page_images.sheet(order) if len(neither) else None,
        "page_images": page_images,
    }


def nearest_words(view: ClusterView) -> Words:
    """The line that helps to name a cluster: the nearest known class, the nearest other cluster, and their cosines."""
    sides = ((view.near.known, "known class "), (view.near.cluster, "new cluster "))
    return join(", ", [(kind, Name(side[0]), f" {side[1]:.2f}") for side, kind in sides if side])


def doubt_words(view: ClusterView, predictions: Predictions) -> Words:
    """What the category may be, and how many images decide it."""
    if view.doubt is None:
        return ()
    n, other = len(view.doubt.rows), view.doubt.other
    said = ("may be two kinds",) if other is None else ("may belong with ", Name(predictions.categories[other].name))
    return (*said, f": see {n:,} image{'' if n == 1 else 's'}")


def _cards(
    views: Sequence[ClusterView],
    predictions: Predictions,
    page_images: PageImages,
    share: float,
    review: Review | None,
    is_calibrated: bool,
) -> Table:
    shown = views[:MOST_CLUSTERS]
    orders = page_images.richest([_orders(shown, *layout) for layout in LAYOUTS], share)
    sheets = list(page_images.sheets(orders, "sheets of clusters"))
    rows, n, deciding = [], len(shown), iter(sheets[2 * len(shown) :])
    for view, central, edge in zip(shown, sheets[: 2 * n : 2], sheets[1 : 2 * n : 2], strict=True):
        purity = None if view.purity is None else 100 * view.purity
        doubt = doubt_words(view, predictions) or None
        about = central, Name(view.category.name)
        said = () if review is None else review_cells(review.clusters.get(view.number), view.n_images)
        near = nearest_words(view) or None, view.near.apart, view.n_neither or None
        decided_by = next(deciding) if doubt else None
        sure = (purity, round(view.n_likely_wrong), *near, doubt, decided_by) if is_calibrated else (purity, *near)
        rows.append((*about, *said, view.n_images, *sure, edge))
    columns = CALIBRATED if is_calibrated else COLUMNS
    # what people said comes right after picture and name
    return Table(columns if review is None else (*columns[:2], *REVIEW_COLUMNS, *columns[2:]), rows)


def _orders(
    views: Sequence[ClusterView], n_central: int, n_outlying: int, pixels: int, columns: int
) -> list[SheetOrder]:
    """Two sheets a cluster, its middle and its edge; then, of each that is in doubt, some images that decide it."""
    ends = [
        (rows, f"{what} of", view)
        for view in views
        for what, rows in zip(("central images", "outliers"), view.ends(n_central, n_outlying), strict=True)
    ]
    deciding = [(np.array(view.doubt.rows, dtype=np.int64), view) for view in views if view.doubt]
    some = [(rows[evenly_spaced(len(rows), N_DECIDING)], "images that decide about", view) for rows, view in deciding]
    return [
        SheetOrder(rows, pixels, columns, f"{what} {short(view.category.name, LONGEST_ALT)}")
        for rows, what, view in ends + some
    ]
