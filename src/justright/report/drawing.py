"""What all figures of a page share: colors, quiet axes, and the way from a figure into the page."""

from __future__ import annotations

import warnings

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from justright.evaluation.figures import to_svg
from justright.report.names import text
from justright.report.svg import INK, LINE, for_page

COLORS = ("#2f6db3", "#d1603d", "#2a9d8f", "#b5892b", "#8a63a8", "#c2568e", "#6f8a3a")
"""Each can be told from the next, on light and on dark paper."""

OTHERS = "#8c8c8c"
"""Of what comes after the first seven."""


def color_of(number: int) -> str:
    """The color of the first, second, ... of several things."""
    return COLORS[number] if number < len(COLORS) else OTHERS


def style_axes(axes: Axes) -> None:
    """Two quiet lines instead of a box, in colors that the page may change."""
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(color=LINE, labelcolor=INK, labelsize=8.5)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def escape_legend(legend: Legend) -> None:
    """A dollar sign in a name is no formula."""
    for entry in legend.get_texts():
        entry.set_parse_math(False)


def in_page(figure: Figure, name: str, caption: str, is_broad: bool = False) -> str:
    """The figure with its caption as an element of a page; a broad one may be moved sideways on a phone."""
    with warnings.catch_warnings():
        # the font that measures the text lacks some scripts; the browser that shows it has them
        warnings.filterwarnings("ignore", message=r"Glyph \d+", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        svg = for_page(to_svg(figure), name, caption)
    kind = " class=broad" if is_broad else ""
    return f"<figure{kind}><div class=wide>{svg}</div><figcaption>{text(caption)}</figcaption></figure>"
