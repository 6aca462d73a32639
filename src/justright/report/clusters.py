"""The clusters of a run as cards: images, confidence, nearest clusters, and the verdicts of a review."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from markupsafe import Markup

from justright.discovery.doubts import Doubt
from justright.discovery.predictions import Category, Predictions
from justright.geometry import ClassSums, row_chunks, unit_rows
from justright.geometry.rows import evenly_spaced
from justright.report.elements import MOST_ROWS, Missing, Name, Table, Values, attempt, cell, optional, short
from justright.report.page_images import PageImages, SheetOrder
from justright.review.findings import Review, ReviewedCluster, findings
from justright.runs.run_folder import RunFolder
from justright.utils.types import Array

# central images, outliers, pixels per side, columns: fewer images per cluster if there are many clusters
LAYOUTS = ((18, 4, 64, 6), (12, 4, 48, 6), (8, 2, 40, 8), (6, 2, 32, 6), (4, 1, 28, 4), (3, 1, 24, 3))
N_DECIDING = 8
N_NEITHER = 24
LONGEST_ALT = 60


@dataclass(frozen=True, eq=False)
class ClusterView:
    """A category with its images. Fields about neighbors are None without features or other categories."""

    number: int  # of the category in the predictions
    category: Category  # its name and kind
    rows: Int[Array, " rows"]  # of the target, most central first; without images unlike all categories
    n_neither: int  # number of images unlike all categories
    purity: float | None  # mean confidence of its predicted images; None if there are none
    n_likely_wrong: float  # expected number of wrong images: the sum of 1 - confidence
    doubt: Doubt | None = None
    near_known: tuple[str, float] | None = None  # the known class with the nearest centroid, other than itself; cosine
    near_cluster: tuple[str, float] | None = None  # the same among discovered clusters
    apart: float | None = None  # mean cosine of its images to its own centroid, less that to the nearest other one

    @property
    def n_images(self) -> int:
        """All images of the category, including those unlike all categories."""
        return len(self.rows) + self.n_neither

    def ends(self, n_central: int, n_outlying: int) -> tuple[Int[Array, " central"], Int[Array, " outlying"]]:
        """Central images, and outliers with the farthest first; at most a quarter are outliers."""
        n_edge = min(n_outlying, len(self.rows) // 4)
        n_middle = min(n_central, len(self.rows) - n_edge)
        return self.rows[:n_middle], self.rows[len(self.rows) - n_edge :][::-1]


def describe_clusters(
    predictions: Predictions, features: Float[Array, "target dim"] | None, doubts: Sequence[Doubt] = ()
) -> list[ClusterView]:
    """Describe every category with images, those with the most expected errors first.

    Without features, images are ordered by confidence, and neighbors are unknown.
    """
    centrality = predictions.confidence.astype(np.float64)
    near: dict[int, dict[str, Any]] = {}
    if features is not None and len(predictions):
        centrality, near = _compare(predictions, features)
    by_cluster = np.split(np.lexsort((-centrality, predictions.cluster)), np.cumsum(predictions.sizes))
    # "belongs with" is not shown: it was right in 4 of 22 judged cases
    two_kinds = {doubt.category: doubt for doubt in doubts if doubt.other is None}
    views = []
    for number, (category, rows) in enumerate(zip(predictions.categories, by_cluster[:-1], strict=True)):
        if len(rows):
            is_neither, is_open = predictions.is_neither[rows], ~predictions.is_given[rows]
            views.append(
                ClusterView(
                    number,
                    category,
                    rows[~is_neither],
                    n_neither=int(is_neither.sum()),
                    purity=float(predictions.purity[number]) if is_open.any() else None,
                    n_likely_wrong=float((1 - predictions.confidence[rows[is_open]]).sum()),
                    doubt=two_kinds.get(number),
                    **near.get(number, {}),
                )
            )
    return sorted(views, key=lambda view: -view.n_likely_wrong)


def _compare(
    predictions: Predictions, features: Float[Array, "target dim"]
) -> tuple[Float[Array, " target"], dict[int, dict[str, Any]]]:
    """The cosine of each image to the centroid of its category, and by category the fields about neighbors."""
    sums, directions = ClassSums().update(features, predictions.cluster), ClassSums()
    unit = unit_rows(sums.centroids())
    place = np.searchsorted(sums.classes, predictions.cluster)  # of the category of each image
    cosines: list[Float[Array, " chunk"]] = []
    start = 0
    for block in row_chunks(features):  # one block in memory at a time
        own = place[start : start + len(block)]
        start += len(block)
        rows = unit_rows(block)
        directions.update(rows, own)
        cosines.append(np.einsum("id,id->i", rows, unit[own]))
    mean_direction = directions.centroids()
    categories = [predictions.categories[number] for number in sums.classes.tolist()]
    is_known = np.array([category.kind == "known" for category in categories])
    near: dict[int, dict[str, Any]] = {}
    for row, number in enumerate(sums.classes.tolist()):  # all pairs of many thousands would not fit into memory
        is_other = np.arange(len(unit)) != row
        cosine = unit @ unit[row]
        of_images = unit @ mean_direction[row]  # the mean of cosines is the product with the mean direction
        near[number] = {"apart": float(of_images[row] - of_images[is_other].max())} if is_other.any() else {}
        for name, side in (("near_known", is_known), ("near_cluster", ~is_known)):
            others = np.flatnonzero(is_other & side)
            if len(others):
                nearest = others[cosine[others].argmax()]
                near[number][name] = categories[nearest].name, float(cosine[nearest])
    return np.concatenate(cosines), near


def target_features(run: RunFolder) -> tuple[Float[Array, "target dim"] | None, str]:
    """Features that tell how central an image is, and their source: "after training", "before training" or ""."""
    tuned, frozen = optional(lambda: run.tuned), optional(lambda: run.frozen)
    for features, source in ((tuned, "after training"), (frozen and frozen[1].features, "before training")):
        if features is not None and features.ndim == 2 and len(features) == len(run.predictions):
            return features, source
    return None, ""


def cluster_cards(
    predictions: Predictions,
    views: Sequence[ClusterView],
    page_images: PageImages,
    review: Review | None = None,
    is_calibrated: bool = False,
) -> Values:
    """Cards of discovered clusters and known classes, and images unlike all categories, in the order of the views."""
    new, known = ([view for view in views if view.category.kind == kind] for kind in ("discovered", "known"))
    share = len(new) / max(len(views), 1)
    discovered = _cards(new, page_images, share, review, is_calibrated) if new else None
    neither = np.flatnonzero(predictions.is_neither)
    least_sure = neither[np.argsort(predictions.confidence[neither], kind="stable")][:N_NEITHER]
    order = SheetOrder(least_sure, LAYOUTS[0][2], 8, "images unlike all categories")
    return {
        "discovered": discovered,
        "known": _cards(known, page_images, 1.0, review, is_calibrated) if known else None,
        "is_calibrated": is_calibrated,
        "has_doubts": any(view.doubt for view in views),
        "n_empty": len(predictions.categories) - len(views),
        "n_neither": len(neither),
        "neither": page_images.sheet(order) if len(neither) else None,
        "page_images": page_images,
    }


def largest_clusters(
    views: Sequence[ClusterView], page_images: PageImages, n: int, n_images: int, pixels: int, columns: int
) -> Values:
    """The largest new clusters: typical images, name, size, expected purity and nearest categories of each."""
    new = [view for view in views if view.category.kind == "discovered"]
    largest = sorted(new, key=lambda view: -view.n_images)[:n]
    alts = [f"typical images of {short(view.category.name, LONGEST_ALT)}" for view in largest]
    orders = [SheetOrder(view.rows[:n_images], pixels, columns, alt) for view, alt in zip(largest, alts, strict=True)]
    clusters = [
        (picture, Name(view.category.name), view.n_images, view.purity, cell("nearest", view))
        for view, picture in zip(largest, page_images.sheets(orders), strict=True)
    ]
    return {"largest": clusters, "n_new": len(new)}


def _cards(
    views: Sequence[ClusterView], page_images: PageImages, share: float, review: Review | None, is_calibrated: bool
) -> Table:
    shown = views[:MOST_ROWS]  # in the order of expected errors
    orders = page_images.first_that_fits([_orders(shown, *layout) for layout in LAYOUTS], share)
    sheets = list(page_images.sheets(orders, "sheets of clusters"))
    n_ends = 2 * len(shown)
    deciding = iter(sheets[n_ends:])
    rows = []
    for view, central, outliers in zip(shown, sheets[0:n_ends:2], sheets[1:n_ends:2], strict=True):
        purity = None if view.purity is None else 100 * view.purity
        row: dict[str, object] = {"picture": central, "cluster": Name(view.category.name)}
        if review is not None:
            row |= review_cells(review.clusters[view.number], view.n_images)
        row["images"] = view.n_images
        if is_calibrated:
            row |= {"expected purity %": purity, "likely wrong": round(view.n_likely_wrong)}
        else:
            row["confidence %"] = purity
        row |= {
            "nearest": cell("nearest", view),
            "apart": view.apart,
            "unlike all categories": view.n_neither or None,
        }
        if is_calibrated:
            n = len(view.doubt.rows) if view.doubt else 0
            row["doubt"] = f"may be two kinds: see {n:,} image{'' if n == 1 else 's'}" if view.doubt else None
            row["decided by"] = next(deciding) if view.doubt else None
        rows.append(row | {"outliers": outliers})
    return Table.of(rows, n_more=len(views) - len(shown))


def _orders(
    views: Sequence[ClusterView], n_central: int, n_outlying: int, pixels: int, columns: int
) -> list[SheetOrder]:
    """Two sheets per cluster, central images and outliers; then, for each doubt, some images that decide it."""
    ends, doubts = [], []
    for view in views:
        name = short(view.category.name, LONGEST_ALT)
        central, outliers = view.ends(n_central, n_outlying)
        ends.append(SheetOrder(central, pixels, columns, f"central images of {name}"))
        ends.append(SheetOrder(outliers, pixels, columns, f"outliers of {name}"))
        if view.doubt:
            rows = np.array(view.doubt.rows, dtype=np.int64)[evenly_spaced(len(view.doubt.rows), N_DECIDING)]
            doubts.append(SheetOrder(rows, pixels, columns, f"images that decide about {name}"))
    return ends + doubts


def review_of(run: RunFolder) -> Values:
    """The review, or why it cannot be shown, or the command to start one; and the clusters it created."""
    review = attempt(lambda: findings(run), "")
    made = () if isinstance(review, Missing) else review.made
    return {
        "review": review,
        "command": shlex.join(["justright", "review", run.path.resolve().name]),
        "made": made_table(made),
    }


def review_cells(reviewed: ReviewedCluster, n_predicted: int) -> dict[str, Markup | int | None]:
    """The cells about the review of a cluster with this many predicted images; None for an empty cell."""
    return {
        "name by reviewers": cell("given_names", reviewed),
        "verdict": cell("verdict", reviewed),
        "images after review": None if reviewed.n_images == n_predicted else reviewed.n_images,
        "images moved away": cell("moved_away", reviewed),
    }


def made_table(made: Iterable[ReviewedCluster]) -> Table:
    """Clusters created in the review, by a split or from single images."""
    largest_first = sorted(made, key=lambda each: -each.n_images)
    rows = [(Name(each.name), each.n_images, cell("verdict", each)) for each in largest_first]
    return Table(("cluster", "images", "verdict"), rows)
