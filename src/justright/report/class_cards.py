"""The classes of the pool as cards: what each weighs and why, how stable that is, what is near, how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from justright.geometry import ClassSums, cosine_similarity, evenly_spaced
from justright.report.elements import Missing, Name, Picture, Table, Values, attempt, cut_in_the_middle, short
from justright.report.page_images import PageImages, SheetOrder
from justright.runs.run_folder import RunFolder
from justright.runs.selection import Selection
from justright.utils.errors import DataError

MOST_CLASSES = 3000  # a longer list is cut in the middle: the page stays within a few megabytes
SIZES = ((5, 48), (4, 40), (4, 32), (3, 28), (2, 24), (1, 28))  # images a card and pixels a side, from the best on
MEASURES = {  # columns that a selection may have: what they are called here, and what they are multiplied by
    "similarity": ("similarity", 1),
    "distance": ("distance", 1),
    "weight_std": ("weight varies by", 1),
    "kept_share": ("kept in resamples %", 100),
}
LONGEST_ALT = 60


def class_cards(run: RunFolder, saved: Selection, page_images: PageImages) -> Values:
    """One card a class, the heaviest first."""
    near = attempt(lambda: nearest_clusters(run, saved), "The nearest cluster of a class cannot be told")
    nearest = {} if isinstance(near, Missing) else near
    rows = sorted(saved.classes.to_pylist(), key=lambda row: -row["weight"])
    shown, n_left_out = cut_in_the_middle(rows, MOST_CLASSES)
    has = {name: said for name, said in MEASURES.items() if name in saved.classes.column_names}
    cells = [
        (
            picture,
            Name(row["class_name"]),
            row["weight"],
            row["n_images"],
            short(row["reason"]),
            *(None if row[name] is None else factor * row[name] for name, (_, factor) in has.items()),
            *nearest.get(row["label"], (None, None)),
        )
        for row, picture in zip(shown, _pictures(shown, saved, page_images), strict=True)
    ]
    columns = ("picture", "class", "weight", "images", "reason", *(said for said, _ in has.values()))
    return {
        "cards": Table((*columns, "nearest cluster", "cosine to it"), cells),
        "near": near,
        "n_left_out": n_left_out,
        "page_images": page_images,
    }


def nearest_clusters(run: RunFolder, saved: Selection) -> dict[int, tuple[Name, float]]:
    """For each class the cluster of the target whose centroid is nearest, and the cosine, in frozen features."""
    if run.frozen is None:
        raise DataError("there are no frozen features")
    pool, target = run.frozen
    if len(pool) != len(saved.images):
        raise DataError(f"{len(pool):,} features and {len(saved.images):,} weights of the pool")
    classes = ClassSums().update(pool.features, saved.images["label"].to_numpy().astype(np.int64))
    clusters = ClassSums().update(target.features, run.predictions.cluster)
    cosine = cosine_similarity(classes.centroids(), clusters.centroids())
    names = [Name(run.predictions.categories[cluster].name) for cluster in clusters.classes.tolist()]
    nearest = [(names[place], float(row[place])) for row, place in zip(cosine, cosine.argmax(axis=1), strict=True)]
    return dict(zip(classes.classes.tolist(), nearest, strict=True))


def _pictures(shown: Sequence[dict[str, Any]], saved: Selection, page_images: PageImages) -> list[Picture | None]:
    """A strip of images a class. Where images do not fit all, both ends of the weights go first."""
    labels = saved.images["label"].to_numpy()
    by_label = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_label], [row["label"] for row in shown]).tolist()
    turn = sorted(range(len(shown)), key=lambda place: min(place, len(shown) - 1 - place))
    rows = [by_label[start : start + row["n_images"]] for start, row in zip(starts, shown, strict=True)]
    alts = [f"images of {short(row['class_name'], LONGEST_ALT)}" for row in shown]
    plans = [
        [SheetOrder(rows[i][evenly_spaced(len(rows[i]), n)], pixels, n, alts[i]) for i in turn] for n, pixels in SIZES
    ]
    made = page_images.sheets(page_images.richest(plans), "thumbnails of classes")
    pictures = dict(zip(turn, made, strict=True))
    return [pictures[place] for place in range(len(shown))]
