"""Shared by all figures: colors, axes, and the conversion to inline SVG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure, FigureBase

from justright.utils.types import Array

# distinguishable on light and dark pages
COLORS = ("#2f6db3", "#d1603d", "#2a9d8f", "#b5892b", "#8a63a8", "#c2568e", "#6f8a3a")
OTHERS = "#8c8c8c"  # the color of everything beyond `COLORS`
INK, LINE, PAPER = "#333333", "#b9b9b9", "#ffffff"  # `for_page` replaces these by colors of the page
TIGHT = {"handletextpad": 0.2, "columnspacing": 1.0, "borderaxespad": 0.2}  # of a legend with many entries
_VARIABLES = {INK: "var(--ink)", "#000000": "var(--ink)", LINE: "var(--line)", PAPER: "var(--paper)"}


def color_of(number: int) -> str:
    """The color of an entry of a legend, by its position from 0."""
    return COLORS[number] if number < len(COLORS) else OTHERS


def datasets(column: pa.ChunkedArray) -> tuple[list[str], Int[Array, " rows"]]:
    """The distinct names in a column, and the index of the name of each row."""
    coded = pc.fill_null(column.cast(pa.string()), "").combine_chunks().dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy()


def figure_with_axes(
    width: float, height: float, shape: tuple[int, int] = (1, 1), dpi: int | None = None, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, row by row, with two spines and colors that follow the page."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor=PAPER, dpi=dpi)
    panels = figure.subplots(*shape, squeeze=False, **options).ravel().tolist()
    for axes in panels:
        axes.set_facecolor("none")
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(LINE)
        axes.tick_params(color=LINE, labelcolor=INK, labelsize=8.5)
        axes.xaxis.label.set_color(INK)
        axes.yaxis.label.set_color(INK)
    return figure, panels


def add_legend(figure: FigureBase, *entries: Any, **options: Any) -> None:
    """Add a legend above the axes; names are not parsed as formulas."""
    plain: dict[str, Any] = {"loc": "outside upper left", "frameon": False, "fontsize": 8.5, "labelcolor": INK}
    for entry in figure.legend(*entries, **plain, **options).get_texts():
        entry.set_parse_math(False)


def panel_grid(n: int, n_columns: int, width: float, row_height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with `n` panels in rows of `n_columns`; the last row may be shorter."""
    n_rows = -(-n // n_columns)
    figure, panels = figure_with_axes(width, 0.5 + row_height * n_rows, (n_rows, n_columns), **options)
    for axes in panels[n:]:
        axes.set_visible(False)
    return figure, panels[:n]


def label_rows(axes: Axes, places: Sequence[float] | range, names: Sequence[str]) -> None:
    """Label rows from the top down; names are not parsed as formulas."""
    axes.yaxis.set_inverted(True)
    axes.set_yticks(places, names)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)


def draw_changes(
    names: Sequence[str], changes: Sequence[Sequence[float]], colors: Sequence[str]
) -> tuple[Figure, Axes]:
    """A row for each change (mean, low and high of its interval), and a line at 0."""
    figure, (axes,) = figure_with_axes(7.2, 1.0 + 0.3 * len(names))
    axes.axvline(0, color=LINE, linewidth=1)
    for place, ((mean, low, high), color) in enumerate(zip(changes, colors, strict=True)):
        axes.plot([low, high], [place, place], color=color, linewidth=1.8)
        axes.plot([mean], [place], "o", color=color, markersize=6)
    label_rows(axes, range(len(names)), names)
    return figure, axes


def text_above(axes: Axes, x: float, text: str, fontsize: float = 8.5) -> None:
    """Write text above the axes, centered at x."""
    transform = axes.get_xaxis_transform()  # x in data, y as a share of the axes
    axes.text(x, 1.01, text, ha="center", va="bottom", fontsize=fontsize, color=INK, transform=transform)


def to_svg(figure: Figure) -> str:
    """Render the figure as deterministic SVG with searchable text."""
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if not axis.get_label_text():  # otherwise matplotlib measures all ticks to place an empty label
            axis.set_label_coords(0, 0)
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "justright", "svg.fonttype": "none"}), warnings.catch_warnings():
        # the font used for measuring lacks some scripts
        warnings.filterwarnings("ignore", message=r"Glyph \d+", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        dpi = figure.dpi
        # `savefig` would draw everything twice, first for the layout
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})  # type: ignore[no-untyped-call]
        figure.dpi = dpi  # `print_svg` changes it
    return text.getvalue()


def for_page(drawn: Figure | str, name: str, title: str) -> Markup:
    """Convert a figure or an SVG document to an inline element: colors of the page, ids prefixed with `name`.

    Its size follows the page. title: alternative text for screen readers.
    """
    svg = drawn if isinstance(drawn, str) else to_svg(drawn)
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", element)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = element.replace("url(#", f"url(#{name}-")
    element = element.replace('xlink:href="#', f'href="#{name}-').replace("xlink:href=", "href=")
    for color, variable in _VARIABLES.items():
        element = element.replace(color, variable)
    opening, _, rest = element.partition(">")
    opening = re.sub(r'\s(width|height)="[^"]*"', "", opening)
    return Markup(f'{opening} role="img" aria-label="{escape(title)}">{rest}')  # noqa: S704 matplotlib escapes text
