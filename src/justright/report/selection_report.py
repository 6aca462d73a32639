"""Figures and page of a selection: the weight of each class, the reason, and images.

Colors distinguish data sets; filled marks are kept classes, hollow ones are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from justright.data.columns import COLUMNS
from justright.data.image_set import ImageSet
from justright.data.opening import open_images
from justright.features.store import INDEX
from justright.report.class_cards import BUDGET, class_cards
from justright.report.drawing import (
    COLORS,
    INK,
    LINE,
    PAPER,
    TIGHT,
    add_legend,
    color_of,
    datasets,
    figure_with_axes,
    text_above,
    to_svg,
)
from justright.report.elements import Missing, Table, attempt, render, short
from justright.report.page_images import PageImages, SmallImages
from justright.runs.selection import FeaturePool, Selection
from justright.selection import SELECTORS, SelectionPlot
from justright.selection.class_weights import closest_first
from justright.selection.diagnosis import Diagnosis
from justright.utils.errors import JustrightError
from justright.utils.files import write_text
from justright.utils.types import Array

SIZE = (5.6, 4.9)  # inches: readable at phone width
MOST_MARKS = 3000  # more marks than this are rasterized
LONGEST_NAME = 24
ONE_LINE = 70  # characters of a legend in one row


def draw_selection(saved: Selection) -> dict[str, Figure]:
    """The figure of a selection by name, "weights" or "ranked"; empty if the selector has none."""
    if saved.name in SELECTORS:
        kind, params = SELECTORS[saved.name], saved.about["params"]
        # files of other versions may have other parameters; JSON has lists for tuples
        known = {each.name: params[each.name] for each in fields(kind) if each.name in params}
        selector = kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in known.items()})
        plot = selector.plot(saved.weights)
    else:  # an unknown selector: rank its classes
        plot = SelectionPlot(saved.weights.measure) if saved.weights.measure else None
    if plot is None:
        return {}
    draw = _draw_weights if plot.kind == "weights" else _draw_ranked
    return {plot.kind: draw(saved, plot)}


def _draw_weights(saved: Selection, plot: SelectionPlot) -> Figure:
    """Similarity or distance of each class against its weight; below, a histogram by data set."""
    values, weight = saved.weights.columns[plot.measure], saved.weights.weight
    figure, top = _with_histogram(saved, plot.measure, sharex=True)
    for number, (x, y) in enumerate(plot.curves, start=1):
        top.plot(x, y, color=INK if number == len(plot.curves) else LINE, linewidth=1.2, zorder=1)
    if plot.level is not None:
        at, text = plot.level
        top.axhline(at, color=INK, linewidth=0.8, linestyle=":")
        top.text(1, at, text, ha="right", va="bottom", fontsize=8.5, color=INK, transform=top.get_yaxis_transform())
    _marks(top, saved, values, weight)
    highest = max([float(weight.max()), *(float(y.max()) for _, y in plot.curves[:1])])
    top.set_ylim(bottom=-0.04 * highest)
    top.set_ylabel("weight")
    top.set_title(plot.title, loc="left", fontsize=10.5, color=INK)
    return figure


def _draw_ranked(saved: Selection, plot: SelectionPlot) -> Figure:
    """Classes, closest first, against their similarity or distance; below, a histogram by data set."""
    figure, top = _with_histogram(saved, plot.measure, sharex=False)
    top.xaxis.set_major_locator(MaxNLocator(integer=True))
    values = saved.weights.columns[plot.measure]
    place = np.empty(len(values))
    place[closest_first(plot.measure, values)] = np.arange(1, len(values) + 1)
    _marks(top, saved, place, values)
    if plot.level is not None:
        at, text = plot.level
        top.axhline(at, color=INK, linewidth=1, linestyle="--")
        top.text(0.01, at, text, va="bottom", fontsize=8.5, color=INK, transform=top.get_yaxis_transform())
    if plot.cut is not None:
        n, text = plot.cut
        top.axvline(n + 0.5, color=INK, linewidth=1, linestyle="--")
        text_above(top, n + 0.5, text)
    start = 0
    for n, text, is_kept in plot.parts:
        text_above(top, start + (n + 1) / 2, text)
        if is_kept:
            top.axvspan(start + 0.5, start + n + 0.5, color=LINE, alpha=0.25, linewidth=0, zorder=0)
        start += n
        if start < len(values):
            top.axvline(start + 0.5, color=LINE, linewidth=0.8)
    top.set_xlabel(f"class, from the {'nearest' if plot.measure == 'distance' else 'most similar'}")
    top.set_ylabel(f"{plot.measure} to the target")
    return figure


def _with_histogram(saved: Selection, measure: str, sharex: bool) -> tuple[Figure, Axes]:
    """A figure with empty axes, and below them a histogram of similarity or distance by data set."""
    figure, (top, below) = figure_with_axes(*SIZE, (2, 1), sharex=sharex, gridspec_kw={"height_ratios": [3, 1.4]})
    values, (_, colors, source) = saved.weights.columns[measure], _sources(saved)
    parts = [values[source == number] for number in range(len(colors))]
    edges = np.histogram_bin_edges(values, bins=min(40, max(8, len(values) // 4)))
    below.hist(parts, bins=edges.tolist(), stacked=True, color=colors, edgecolor=PAPER, linewidth=0.5)
    below.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    below.set_xlabel(f"{measure} to the target")
    below.set_ylabel("classes")
    return figure, top


def _marks(axes: Axes, saved: Selection, x: Float[Array, " classes"], y: Float[Array, " classes"]) -> None:
    is_kept = saved.weights.weight > 0
    sources, palette, source = _sources(saved)
    colors = np.array(palette)[source]
    for kept in (False, True):
        rows = is_kept == kept
        axes.scatter(x[rows], y[rows], s=18, c=colors[rows] if kept else "none", edgecolors=colors[rows],
                     linewidths=1.0, alpha=0.9, rasterized=len(x) > MOST_MARKS, zorder=2)  # fmt: skip
    marks = [(color, color) for color in palette] + ([] if is_kept.all() else [(INK, "none")])
    names = [short(name, LONGEST_NAME) for name in sources] + ([] if is_kept.all() else ["left out"])
    plain: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 5}
    handles = [Line2D([], [], markeredgecolor=edge, markerfacecolor=face, **plain) for edge, face in marks]
    n_columns = len(names) if sum(len(name) + 4 for name in names) < ONE_LINE else 3
    add_legend(axes.figure, handles, names, ncols=n_columns, **TIGHT)


def _sources(saved: Selection) -> tuple[list[str], list[str], Int[Array, " classes"]]:
    """Names and colors of the data sets, and the data set of each class; those beyond the colors share one."""
    names, of_class = datasets(saved.classes["dataset"])
    n_more = len(names) - len(COLORS)
    shown = [*names[: len(COLORS)], *([f"{n_more} more"] if n_more > 0 else [])]
    return shown, [*map(color_of, range(len(shown)))], np.minimum(of_class, len(COLORS))


def pool_images(pool: FeaturePool) -> ImageSet:
    """The images behind feature stores, where they were when their features were extracted."""
    sets = []
    for table in pool.tables:
        if table.path is None or "source" not in table.index.column_names:
            raise JustrightError("the feature store has no paths of its images")
        images = open_images(str(table.path / INDEX))  # it lists images as `open_images` reads them
        sets.append(ImageSet(images.table.select(list(COLUMNS)), images.readers))
    return ImageSet.concat(sets)


def selection_page(
    result: Selection,
    settings: Mapping[str, object],
    figures: Mapping[str, str],
    page_images: PageImages,
    diagnosis: Diagnosis | None = None,
) -> str:
    """Render the page.

    settings: chosen by the user. figures: SVG documents by name. page_images: those of the pool.
    """
    return render(
        "selection.html",
        result=result,
        settings=settings,
        sources=Table(result.source_columns(), result.source_cells()),
        figures=figures,
        diagnosis=diagnosis,
        classes=class_cards(result, page_images),
        page_images=page_images,
    )


def write_selection_report(
    result: Selection,
    settings: Mapping[str, object],
    diagnosis: Diagnosis | None = None,
    figures: Path | None = None,
    page: Path | None = None,
) -> tuple[list[Path], str]:
    """Write `weights.svg` or `ranked.svg` into a directory, and a page that also shows images.

    Returns the files written, and why images are missing on the page, if so.
    """
    drawn = {name: to_svg(figure) for name, figure in draw_selection(result).items()}
    documents = {} if figures is None else {figures / f"{name}.svg": svg for name, svg in drawn.items()}
    problem = ""
    if page is not None:
        pool = result.pool
        assert pool is not None
        images = attempt(lambda: SmallImages(pool_images(pool)), "")
        page_images = PageImages(images, BUDGET)
        documents[page] = selection_page(result, settings, drawn, page_images, diagnosis)
        problem = images.reason if isinstance(images, Missing) else "".join(page_images.problems[:1])
    for path, text in documents.items():
        write_text(path, text)
    return list(documents), problem
