"""The classes of a selection as cards: images, weight, reason, what the selector measured, the nearest cluster."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from justright.geometry import ClassSums, cosine_similarity, evenly_spaced
from justright.report.elements import MOST_ROWS, Missing, Name, Table, Values, attempt, short
from justright.report.page_images import PageImages, SheetOrder
from justright.runs.run_folder import RunFolder
from justright.runs.selection import Selection
from justright.utils.errors import DataError

SIZES = ((5, 48), (4, 40), (4, 32), (3, 28), (2, 24), (1, 28))  # images per card, pixels per side
MEASURES = {  # optional columns of a selection, with their titles
    "similarity": "similarity",
    "distance": "distance",
    "weight_std": "weight std",
    "kept_share": "kept in resamples",
}
LONGEST_ALT = 60
BUDGET = 2_000_000  # characters of pictures


def run_class_cards(run: RunFolder, saved: Selection, page_images: PageImages) -> Values:
    """The cards of a run, with the nearest cluster of each class, or why it is unknown."""
    near = attempt(lambda: nearest_clusters(run, saved), "The nearest cluster of each class is unknown")
    nearest = {} if isinstance(near, Missing) else near
    return {"cards": class_cards(saved, page_images, nearest), "near": near, "page_images": page_images}


def class_cards(
    saved: Selection, page_images: PageImages, nearest: Mapping[int, tuple[Name, float]] | None = None
) -> Table:
    """One card per class, the largest weight first: images, weight, reason, and the nearest cluster if there are any.

    page_images: of all images that have a weight. nearest: by label, the cluster and its cosine.
    """
    shown = sorted(saved.classes.to_pylist(), key=lambda row: -row["weight"])[:MOST_ROWS]
    measures = {name: title for name, title in MEASURES.items() if name in saved.classes.column_names}
    labels = saved.images["label"].to_numpy()
    by_label = np.argsort(labels, kind="stable")
    plans: list[list[SheetOrder]] = [[] for _ in SIZES]
    for row in shown:
        start = int(np.searchsorted(labels, row["label"], sorter=by_label))
        images = by_label[start : start + row["n_images"]]
        alt = f"images of {short(row['class_name'], LONGEST_ALT)}"
        for plan, (n, size) in zip(plans, SIZES, strict=True):
            plan.append(SheetOrder(images[evenly_spaced(len(images), n)], size, n, alt))
    pictures = page_images.sheets(page_images.first_that_fits(plans), "thumbnails of classes")
    cells: list[dict[str, object]] = []
    for row, picture in zip(shown, pictures, strict=True):
        own = {"picture": picture, "class": Name(row["class_name"]), "weight": row["weight"]}
        own |= {"images": row["n_images"], "reason": short(row["reason"])}
        own |= {title: row[name] for name, title in measures.items()}
        if nearest is not None:
            own["nearest cluster"], own["cosine to it"] = nearest.get(row["label"], (None, None))
        cells.append(own)
    return Table.of(cells, len(saved.classes) - len(cells))


def nearest_clusters(run: RunFolder, saved: Selection) -> dict[int, tuple[Name, float]]:
    """For each class the cluster with the nearest centroid in frozen features, and the cosine."""
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
