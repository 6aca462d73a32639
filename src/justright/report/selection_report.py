"""The pictures and the page of a selection: why classes weigh what they weigh, and images of those at both ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import ImageOps

from justright.data.image_set import ImageSet
from justright.data.opening import open_images
from justright.features.store import INDEX
from justright.features.table import FeatureTable
from justright.geometry import evenly_spaced
from justright.report.drawing import INK, PAPER, to_svg
from justright.report.elements import Missing, Table, attempt, cut_in_the_middle, render
from justright.report.page_images import data_uri
from justright.report.selection_figures import draw_selection
from justright.runs.feature_pool import FeaturePool
from justright.runs.selection import Selection
from justright.selection.verdict import COLUMNS, Diagnosis
from justright.utils.errors import JustrightError
from justright.utils.files import write_text
from justright.utils.seeding import generator

N_CLASSES, N_IMAGES, PIXELS = 6, 4, 88  # classes at each end, images a class, and pixels a side
MOST_CLASSES = 4000  # a longer table of classes is cut in the middle: the page stays within a few megabytes


@dataclass(frozen=True)
class ClassExamples:
    """A class and some of its images, each as the text of a data URI."""

    class_name: str
    reason: str
    images: tuple[str, ...]


ExampleSheet = Mapping[str, Sequence[ClassExamples]]  # classes that weigh most and those that weigh least, by title


def example_sheet(result: Selection, seed: int) -> ExampleSheet:
    """Open images of the classes at both ends of the weights; of equal weights, which ones is drawn by seed.

    Images are looked for where they were when their features were extracted.
    """
    weight = result.weights.weight
    n_most = min(N_CLASSES, -(-len(weight) // 2))
    n_least = 0 if np.ptp(weight) == 0 else min(N_CLASSES, len(weight) // 2)  # of equals, none weighs least
    drawn = generator(seed, "examples").permutation(len(weight))
    order = drawn[np.argsort(-weight[drawn], kind="stable")].tolist()
    ends = {"Weigh most": order[:n_most], "Weigh least": order[len(order) - n_least :]}
    assert result.pool is not None
    sets, reasons = [_images(table) for table in result.pool.tables], result.weights.reason
    return {
        title: [_examples(result.pool, sets, label, reasons[label]) for label in labels]
        for title, labels in ends.items()
        if labels
    }


def draw_sheet(sheet: ExampleSheet) -> str:
    """The sheet as an SVG document."""
    return render("examples.svg", sheet=sheet, pixels=PIXELS, ink=INK, paper=PAPER)


def _images(table: FeatureTable) -> ImageSet:
    """The images behind a feature store: its index lists them as `open_images` reads it."""
    if table.path is None or "source" not in table.index.column_names:
        raise JustrightError("the feature store does not say where its images are")
    return open_images(str(table.path / INDEX))


def _examples(pool: FeaturePool, sets: Sequence[ImageSet], label: int, reason: str) -> ClassExamples:
    members = np.flatnonzero(pool.labels == label)
    rows = members[evenly_spaced(len(members), N_IMAGES)]
    starts = np.cumsum([0, *map(len, pool.tables)])
    numbers = np.searchsorted(starts, rows, side="right") - 1
    images = [sets[number].image(int(row - starts[number])) for number, row in zip(numbers, rows, strict=True)]
    return ClassExamples(
        class_name=pool.class_names[label],
        reason=reason,
        # twice as fine, for screens with fine pixels
        images=tuple(data_uri(ImageOps.fit(image, (PIXELS * 2, PIXELS * 2)), "JPEG", quality=72) for image in images),
    )


def selection_page(
    result: Selection,
    asked: Mapping[str, object],
    figures: Mapping[str, str],
    sheet: ExampleSheet | Missing,
    diagnosis: Diagnosis | None = None,
) -> str:
    """The whole page. `asked` is what the person gave, `figures` are SVG documents by name."""
    rows = sorted(result.classes.to_pylist(), key=lambda row: -row["weight"])
    shown, n_left_out = cut_in_the_middle(rows, MOST_CLASSES)
    columns = {"class": "class_name", "images": "n_images", "weight": "weight"}
    columns |= {measure: measure} if (measure := result.weights.measure) else {}
    columns["reason"] = "reason"
    if result.stability is not None:
        columns |= {"kept in resamples %": "kept_share", "weight varies by": "weight_std"}
        shown = [row | {"kept_share": round(100 * row["kept_share"])} for row in shown]
    return render(
        "selection.html",
        result=result,
        asked=asked,
        sources=Table(result.source_columns(), result.source_cells()),
        figures=figures,
        sheet=sheet,
        diagnosis=diagnosis,
        settings=None if diagnosis is None else Table(COLUMNS, diagnosis.cells()),
        classes=Table(tuple(columns), [[row[name] for name in columns.values()] for row in shown]),
        n_left_out=n_left_out,
    )


def write_selection_report(
    result: Selection,
    asked: Mapping[str, object],
    diagnosis: Diagnosis | None = None,
    figures: Path | None = None,
    page: Path | None = None,
    seed: int = 0,
) -> tuple[list[Path], str]:
    """Write `weights.svg` or `ranked.svg` and `examples.svg` into a directory, and all of it as one page.

    Gives the files written, and why there are no example images, if so.
    """
    drawn = {name: to_svg(figure) for name, figure in draw_selection(result).items()}
    sheet = attempt(lambda: example_sheet(result, seed), "")
    documents: dict[Path, str] = {}
    if figures is not None:
        documents |= {figures / f"{name}.svg": svg for name, svg in drawn.items()}
        if not isinstance(sheet, Missing):
            documents[figures / "examples.svg"] = draw_sheet(sheet)
    if page is not None:
        documents[page] = selection_page(result, asked, drawn, sheet, diagnosis)
    for path, text in documents.items():
        write_text(path, text)
    return list(documents), sheet.reason if isinstance(sheet, Missing) else ""
