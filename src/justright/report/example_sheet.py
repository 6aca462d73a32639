"""A few images of the classes that weigh most and least: to see what a selection means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from justright.data.image_set import ImageSet
from justright.data.opening import open_images
from justright.errors import JustrightError
from justright.features.store import INDEX
from justright.features.table import FeatureTable
from justright.report.drawing import INK, PAPER
from justright.report.page_images import data_uri, spread, square
from justright.report.rendering import render
from justright.runs.selection_result import SelectionResult
from justright.seeding import generator

N_CLASSES, N_IMAGES, PIXELS = 6, 4, 88  # classes at each end, images a class, and pixels a side


@dataclass(frozen=True)
class ClassExamples:
    """A class and some of its images, each as the text of a data URI."""

    class_name: str
    reason: str
    images: tuple[str, ...]


@dataclass(frozen=True)
class ExampleSheet:
    """The classes that weigh most and those that weigh least, by title; `problem` says why images are missing."""

    parts: dict[str, tuple[ClassExamples, ...]]
    problem: str = ""


def example_sheet(
    result: SelectionResult, n_classes: int = N_CLASSES, n_images: int = N_IMAGES, seed: int = 0
) -> ExampleSheet:
    """Open images of the classes at both ends of the weights; of equal weights, which ones is drawn by seed.

    Images are looked for where they were when their features were extracted. If one cannot be opened any more there is
    no sheet, but the reason.
    """
    weight = result.weights.weight
    n_most = min(n_classes, -(-len(weight) // 2))
    n_least = 0 if np.ptp(weight) == 0 else min(n_classes, len(weight) // 2)  # of equals, none weighs least
    drawn = generator(seed, "examples").permutation(len(weight))
    order = drawn[np.argsort(-weight[drawn], kind="stable")].tolist()
    ends = {"Weigh most": order[:n_most], "Weigh least": order[len(order) - n_least :]}
    try:
        sets = [_images(table) for table in result.pool.tables]
        parts = {
            title: tuple(_examples(result, sets, label, n_images) for label in labels)
            for title, labels in ends.items()
            if labels
        }
    except (JustrightError, OSError) as error:
        return ExampleSheet({}, problem=str(error).splitlines()[0])
    return ExampleSheet(parts)


def draw_sheet(sheet: ExampleSheet) -> str:
    """The sheet as an SVG document."""
    return render("examples.svg", sheet=sheet, pixels=PIXELS, ink=INK, paper=PAPER)


def _images(table: FeatureTable) -> ImageSet:
    """The images behind a feature store: its index lists them as `open_images` reads it."""
    if table.path is None or "source" not in table.index.column_names:
        raise JustrightError("the feature store does not say where its images are")
    return open_images(table.path / INDEX)


def _examples(result: SelectionResult, sets: Sequence[ImageSet], label: int, n_images: int) -> ClassExamples:
    pool = result.pool
    rows = spread(np.flatnonzero(pool.labels == label), n_images)
    starts = np.cumsum([0, *map(len, pool.tables)])
    numbers = np.searchsorted(starts, rows, side="right") - 1
    images = [sets[number].image(int(row - starts[number])) for number, row in zip(numbers, rows, strict=True)]
    return ClassExamples(
        class_name=pool.class_names[label],
        reason=result.weights.reason[label],
        # twice as fine, for screens with fine pixels
        images=tuple(data_uri(square(image, PIXELS * 2), "JPEG", quality=72) for image in images),
    )
