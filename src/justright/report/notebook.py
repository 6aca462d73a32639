"""A result in a notebook cell: expected accuracy, largest new clusters, and confidence."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from justright.discovery.predictions import Predictions
from justright.evaluation import Counts, match_counts
from justright.report.clusters import describe_clusters, largest_clusters, target_features
from justright.report.elements import Missing, attempt, render
from justright.report.page_images import PageImages, SmallImages
from justright.report.run_parts import headline, judged
from justright.runs.run_folder import RunFolder
from justright.utils.types import Array

N_CLUSTERS, N_IMAGES, PIXELS = 12, 8, 56
BUDGET = 900_000  # characters of pictures: a notebook with several results stays small
EDGES = np.linspace(0, 1, 11)  # of the bins of confidence


def result_html(run: RunFolder) -> str:
    """Build the HTML of a result for `_repr_html_`: inline style, no script, pictures as data URIs, below 1 MB."""
    predictions = attempt(lambda: run.predictions, "There are no predictions")
    if isinstance(predictions, Missing):
        return render("notebook.html", missing=predictions)
    views = describe_clusters(predictions, target_features(run)[0])
    images = PageImages(attempt(lambda: SmallImages(run.target), "the list of target images cannot be read"), BUDGET)
    return render(
        "notebook.html",
        missing=None,
        headline=headline(predictions, views, run.expected, run.about.get("calibrated_on", "")),
        **largest_clusters(views, images, N_CLUSTERS, N_IMAGES, PIXELS, N_IMAGES),
        page_images=images,
        is_calibrated=run.expected is not None,
        bins=confidence_bins(predictions, _is_right(run)),
    )


def confidence_bins(
    predictions: Predictions, is_right: Bool[Array, " predicted"] | None
) -> list[tuple[str, int, float, float | None]]:
    """Count predicted images by confidence, with their expected share right and, where known, the observed one.

    is_right: one entry for each image that was not labeled before the run.
    """
    confidence = predictions.confidence[~predictions.is_given].astype(np.float64)
    place = np.clip(np.digitize(confidence, EDGES) - 1, 0, len(EDGES) - 2)
    bins = []
    for number in np.unique(place)[::-1].tolist():
        is_in = place == number
        title = f"{100 * EDGES[number]:.0f} to {100 * EDGES[number + 1]:.0f} %"
        observed = None if is_right is None else float(is_right[is_in].mean())
        bins.append((title, int(is_in.sum()), float(confidence[is_in].mean()), observed))
    return bins


def _is_right(run: RunFolder) -> Bool[Array, " predicted"] | None:
    """Whether the cluster of each predicted image is matched to its true class; None where truth is not known."""
    truth = judged(run)
    if isinstance(truth, Missing) or not len(truth.y_true):
        return None
    matching = match_counts(Counts.of(truth.y_true, truth.y_pred))
    return matching.to_classes(truth.y_pred) == truth.y_true
