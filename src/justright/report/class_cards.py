"""The classes of the pool as cards: what each weighs and why, how stable that is, what is near, how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from justright.errors import DataError
from justright.geometry import ClassSums, cosine_similarity
from justright.progress import Track, silent
from justright.report.names import Markup, named, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.page_shell import cards, note
from justright.report.reading import Missing, attempt
from justright.runs.run_folder import RunFolder
from justright.runs.saved_selection import SavedSelection
from justright.types import Array

MOST_CLASSES = 3000
"""A longer list is cut in the middle: the page stays within a few megabytes."""

SIZES = ((5, 48), (4, 40), (4, 32), (3, 28), (2, 24), (1, 28))
"""Images a card and pixels a side, from the best on."""

LONGEST_ALT = 60


def cut_in_the_middle(rows: Sequence[Any], most: int = MOST_CLASSES) -> tuple[list[Any], int]:
    """Both ends of a list, and how many entries are left out between them."""
    if len(rows) <= most:
        return list(rows), 0
    n_last = most // 2
    return [*rows[: most - n_last], *rows[len(rows) - n_last :]], len(rows) - most


def class_cards(run: RunFolder, saved: SavedSelection, thumbs: PageImages, track: Track = silent) -> str:
    """One card a class, the heaviest first."""
    near = attempt(lambda: nearest_clusters(run, saved), "The nearest cluster of a class cannot be told")
    rows = sorted(saved.classes.to_pylist(), key=lambda row: -row["weight"])
    shown, n_cut = cut_in_the_middle(rows)
    pictures = _pictures(shown, saved, thumbs, track)
    columns = ["picture", "class", "weight", "images", "reason"]
    measures = {"similarity": "similarity", "distance": "distance", "weight_std": "weight varies by"}
    has = {name: said for name, said in measures.items() if name in saved.classes.column_names}
    has_shares = "kept_share" in saved.classes.column_names
    columns += [*has.values(), *(["kept in resamples %"] if has_shares else []), "nearest cluster", "cosine to it"]
    cells = [
        (
            picture or None,
            named(row["class_name"]),
            row["weight"],
            row["n_images"],
            short(row["reason"]),
            *(row[name] for name in has),
            *([_percent(row["kept_share"])] if has_shares else []),
            *_near(near, row["label"]),
        )
        for row, picture in zip(shown, pictures, strict=True)
    ]
    said = [note(near.reason)] if isinstance(near, Missing) else []
    said += (
        [note(f"{n_cut:,} classes in the middle are left out here; weights.classes.parquet has all.")] if n_cut else []
    )
    return "\n".join(
        [*said, cards("classes", columns, cells, "Search classes and reasons"), *map(note, thumbs.remarks())]
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def nearest_clusters(run: RunFolder, saved: SavedSelection) -> dict[int, tuple[str, float]]:
    """For each class the cluster of the target whose centroid is nearest, and the cosine, in frozen features."""
    tables = run.frozen
    if tables is None:
        raise DataError("there are no frozen features")
    pool, target = tables
    if len(pool) != len(saved.images):
        raise DataError(f"{len(pool):,} features and {len(saved.images):,} weights of the pool")
    labels = saved.images["label"].to_numpy().astype(np.int64)
    classes = ClassSums().update(pool.features, labels)
    clusters = ClassSums().update(target.features, run.predictions.cluster)
    cosine = cosine_similarity(classes.centroids(), clusters.centroids())
    best = cosine.argmax(axis=1)
    names = run.predictions.categories
    return {
        int(label): (names[int(clusters.classes[place])].name, float(row[place]))
        for label, row, place in zip(classes.classes, cosine, best, strict=True)
    }


def _near(near: dict[int, tuple[str, float]] | Missing, label: int) -> tuple[Markup | None, float | None]:
    if isinstance(near, Missing) or label not in near:
        return None, None
    name, cosine = near[label]
    return named(name), cosine


def _pictures(shown: Sequence[dict[str, Any]], saved: SavedSelection, thumbs: PageImages, track: Track) -> list[Markup]:
    """A strip of images a class. Where images do not fit all, both ends of the weights go first."""
    labels = saved.images["label"].to_numpy().astype(np.int64)
    by_label = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_label], [row["label"] for row in shown]).tolist()
    turn = _from_both_ends(len(shown))
    plans = []
    for n_images, pixels in SIZES:
        orders = []
        for place in turn:
            rows = by_label[starts[place] : starts[place] + shown[place]["n_images"]]
            what = f"images of {short(shown[place]['class_name'], LONGEST_ALT)}"
            orders.append(SheetOrder(_spread(rows, n_images), pixels, n_images, what))
        plans.append(orders)
    pictures = [Markup("")] * len(shown)
    made = thumbs.sheets(thumbs.richest(plans), track, "thumbnails of classes")
    for place, picture in zip(turn, made, strict=True):
        pictures[place] = picture
    return pictures


def _spread(rows: Int[Array, " rows"], n: int) -> Int[Array, " some"]:
    return rows[np.unique(np.linspace(0, len(rows) - 1, n).astype(int))] if len(rows) else rows


def _from_both_ends(n: int) -> list[int]:
    """0, n - 1, 1, n - 2, ..."""
    return [place // 2 if place % 2 == 0 else n - 1 - place // 2 for place in range(n)]
