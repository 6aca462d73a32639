"""Every cluster as a card: its images, how sure the method is, what is nearest, and what reviewers said about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import numpy as np

from justright.discovery.predictions import Predictions
from justright.progress import Track, silent
from justright.report.cluster_views import ClusterView
from justright.report.elements import Missing, Name, Table, Values, Words, attempt, join, short
from justright.report.page_images import PageImages, SheetOrder
from justright.review.findings import Review, ReviewedCluster, findings
from justright.runs.run_folder import RunFolder

MOST_CLUSTERS = 3000  # more cards than this are cut: those stay where most images are likely wrong
# central images, outliers, pixels a side, columns: the more clusters, the less of each, so that all are there
LAYOUTS = ((18, 4, 64, 6), (12, 4, 48, 6), (8, 2, 40, 8), (6, 2, 32, 6), (4, 1, 28, 4), (3, 1, 24, 3))
COLUMNS = ("picture", "cluster", "images", "confidence %", "likely wrong", "nearest", "apart", "neither", "outliers")
REVIEW_COLUMNS = ("name by reviewers", "verdict", "images after review", "images that left")
MOST_REVIEWERS, MOST_PLACES, MOST_MADE = 3, 3, 500  # longer lists are summed up: a page has to stay small
DONE = {"keep": "kept", "reject": "rejected"}
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


def review_of(run: RunFolder) -> Values:
    """The review, or why it cannot be shown, or the command that begins one; and the clusters that it made."""
    review = attempt(lambda: findings(run), "")
    made = () if isinstance(review, Missing) else review.made
    return {
        "review": review,
        "command": shlex.join(["justright", "review", run.path.resolve().name]),
        "made": made_table(made),
        "n_made": len(made),
    }


def review_cells(found: ReviewedCluster | None, n_predicted: int) -> tuple[Words | int | None, ...]:
    """What stands under `REVIEW_COLUMNS` for a cluster that had so many images; None where there is nothing to say."""
    if found is None:
        return (None,) * len(REVIEW_COLUMNS)
    n_now = None if found.n_images == n_predicted else found.n_images
    return _called(found) or None, _verdict(found) or None, n_now, _elsewhere(found) or None


def made_table(made: Iterable[ReviewedCluster]) -> Table:
    """Clusters that the run did not find: what was split off, and what was put together from single images."""
    shown = sorted(made, key=lambda each: -each.n_images)[:MOST_MADE]
    rows = [(Name(each.name), each.n_images, _verdict(each) or None) for each in shown]
    return Table(("cluster", "images", "verdict"), rows)


def _called(found: ReviewedCluster) -> Words:
    """The name that people gave, and who would rather have another."""
    words: list[Words] = []
    if found.given_name is not None:
        words.append((Name(found.given_name), " (known class)" if found.kind == "known" else ""))
    for name in dict.fromkeys(found.other_names.values()):
        words.append((Name(name), " by ", *_people(who for who, said in found.other_names.items() if said == name)))
    return join("; ", words)


def _verdict(found: ReviewedCluster) -> Words:
    if _is_merged(found):
        return "merged into ", Name(found.elsewhere[0][0])
    if not found.n_images:  # what was said of it while it had images no longer counts
        return ("no image left",)
    said = [
        (f"{DONE[verdict]} by ", *_people(who for who, each in found.verdicts.items() if each == verdict))
        for verdict in DONE
        if verdict in found.verdicts.values()
    ]
    return (("disputed: ",) if found.status == "disputed" else ()) + join(", ", said)


def _elsewhere(found: ReviewedCluster) -> Words:
    """Where images of the cluster are now, if not in it."""
    if _is_merged(found):
        return ()
    words: list[Words] = [(f"{n:,} in ", Name(name)) for name, n in found.elsewhere[:MOST_PLACES]]
    if n_more := sum(n for _, n in found.elsewhere[MOST_PLACES:]):
        words.append((f"{n_more:,} in other clusters",))
    if found.n_rejected:
        words.append((f"{found.n_rejected:,} rejected",))
    return join(", ", words)


def _is_merged(found: ReviewedCluster) -> bool:
    return not found.n_images and len(found.elsewhere) == 1 and not found.n_rejected


def _people(reviewers: Iterable[str]) -> Words:
    names = list(reviewers)
    return (f"{len(names):,} reviewers",) if len(names) > MOST_REVIEWERS else join(" and ", [(Name(n),) for n in names])
