"""Why classes weigh what they weigh, as figures: the beta curve, ranked distances, ranked similarities.

Import this module only to draw: matplotlib takes half a second. Colors tell data sets apart; a filled mark is a class
that is kept, a hollow one a class that is left out.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from justright.geometry import beta_density, to_unit_interval
from justright.report.drawing import COLORS, INK, LINE, OTHERS, PAPER, escape_legend, style_axes
from justright.report.elements import short
from justright.runs.selection_result import SelectionResult
from justright.selection import BetaSelector, BinsSelector, CuiSelector
from justright.selection.distance_bins import DISCARDED
from justright.types import Array

SIZE = (5.6, 4.9)
"""Inches: at phone width the letters are still readable."""

MOST_MARKS = 3000
"""More marks than this go into the file as pixels."""

LONGEST_NAME = 24
ONE_LINE = 70
"""So many letters of a legend stand beside each other."""


def draw_selection(result: SelectionResult) -> dict[str, Figure]:
    """The figures that a selection has, by name; none where every class weighs 1 unseen."""
    selector = result.selector
    if isinstance(selector, BetaSelector):
        return {"weights": draw_weights(result, selector)}
    if isinstance(selector, BinsSelector):
        return {"ranked": draw_distances(result, selector)}
    if isinstance(selector, CuiSelector):
        return {"ranked": draw_similarities(result, selector)}
    return {}


def draw_weights(result: SelectionResult, selector: BetaSelector) -> Figure:
    """Similarity of each class against its weight over the beta curve; below, how many classes of each data set."""
    figure, top, below = _panels()
    similarity, weight = selector.class_similarity_, selector.class_weight_
    grid, density = _curve(selector)
    is_hard = selector.threshold is not None
    top.plot(grid, density, color=LINE if is_hard else INK, linewidth=1.2, zorder=1)
    if selector.threshold is not None:
        top.plot(grid, (density > selector.threshold).astype(float), color=INK, linewidth=1.2, zorder=1)
        top.axhline(selector.threshold, color=INK, linewidth=0.8, linestyle=":")
        top.text(1, selector.threshold, f"threshold {selector.threshold:g}", ha="right", va="bottom", fontsize=8.5,
                 color=INK, transform=top.get_yaxis_transform())  # fmt: skip
    _marks(top, result, similarity, weight)
    top.set_ylim(bottom=-0.04 * max(float(density.max()), float(weight.max())))
    top.set_ylabel("weight")
    top.set_title(f"Beta({selector.alpha:g}, {selector.beta:g})", loc="left", fontsize=10.5, color=INK)
    _histogram(below, result, similarity, "similarity to the target")
    return figure


def draw_distances(result: SelectionResult, selector: BinsSelector) -> Figure:
    """Classes from the nearest to the farthest, the threshold, and the bins; below, distances by data set."""
    figure, top, below = _panels(share=False)
    distance = selector.class_distance_
    order = np.argsort(distance, kind="stable")
    place = np.empty(len(order))
    place[order] = np.arange(1, len(order) + 1)
    _marks(top, result, place, distance)
    if selector.discard and np.isfinite(selector.threshold_):
        top.axhline(selector.threshold_, color=INK, linewidth=1, linestyle="--")
        top.text(0.01, selector.threshold_, f"threshold {selector.threshold_:.3g}", va="bottom", fontsize=8.5,
                 color=INK, transform=top.get_yaxis_transform())  # fmt: skip
    if selector.combine == "average":  # by majority, bins need not follow the mean distance
        _bin_edges(top, selector, order)
    top.set_xlabel("class, from the nearest")
    top.set_ylabel("distance to the target")
    _histogram(below, result, distance, "distance to the target")
    return figure


def draw_similarities(result: SelectionResult, selector: CuiSelector) -> Figure:
    """Classes from the most similar on, and the cut; below, similarities by data set."""
    figure, top, below = _panels(share=False)
    similarity = selector.class_similarity_
    order = np.argsort(-similarity, kind="stable")
    place = np.empty(len(order))
    place[order] = np.arange(1, len(order) + 1)
    _marks(top, result, place, similarity)
    if selector.greedy == "single":  # marginal choices do not follow this order
        n_kept = len(selector.selected_classes_)
        top.axvline(n_kept + 0.5, color=INK, linewidth=1, linestyle="--")
        top.text(n_kept + 0.5, 1.01, f"{n_kept} kept", ha="center", va="bottom", fontsize=8.5, color=INK,
                 transform=top.get_xaxis_transform())  # fmt: skip
    top.set_xlabel("class, from the most similar")
    top.set_ylabel("similarity to the target")
    _histogram(below, result, similarity, "similarity to the target")
    return figure


def _panels(share: bool = True) -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained", facecolor=PAPER)
    top, below = figure.subplots(2, 1, sharex=share, gridspec_kw={"height_ratios": [3, 1.4]})
    for axes in (top, below):
        style_axes(axes)
    if not share:
        top.xaxis.set_major_locator(MaxNLocator(integer=True))
    below.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    return figure, top, below


def _curve(selector: BetaSelector) -> tuple[Float[Array, " grid"], Float[Array, " grid"]]:
    """Similarities in order and the density there, on the scale of the weights."""
    similarity = selector.class_similarity_
    if selector.domain == "rank":  # known at the classes only
        grid = np.sort(similarity)
    elif selector.domain == "minmax":
        grid = np.linspace(similarity.min(), similarity.max(), 800)
    else:
        low = -1.0 if selector.domain == "affine" else min(0.0, float(similarity.min()))
        grid = np.linspace(low, 1.0, 800)
    density = _density(selector, grid)
    if selector.normalize != "none":
        soft = _density(selector, similarity)
        density = density * (selector.class_weight_.max() / soft.max())
    if selector.weight_range is not None:
        density = np.clip(density, *selector.weight_range)
    return grid, np.minimum(density, 1e3)  # a density below 1 and 1 has poles


def _density(selector: BetaSelector, similarity: Float[Array, " n"]) -> Float[Array, " n"]:
    unit = to_unit_interval(similarity, selector.domain, selector.target_similarity_)
    return beta_density(unit, selector.alpha, selector.beta)


def _marks(axes: Axes, result: SelectionResult, x: Float[Array, " classes"], y: Float[Array, " classes"]) -> None:
    is_kept = result.selector.class_weight_ > 0
    colors = np.array([color for _, color in _sources(result)])[_source_of_class(result)]
    for kept in (False, True):
        rows = is_kept == kept
        axes.scatter(x[rows], y[rows], s=18, c=colors[rows] if kept else "none", edgecolors=colors[rows],
                     linewidths=1.0, alpha=0.9, rasterized=len(x) > MOST_MARKS, zorder=2)  # fmt: skip
    handles = [_handle(color, "o", color) for _, color in _sources(result)]
    names = [short(name, LONGEST_NAME) for name, _ in _sources(result)]
    if not is_kept.all():
        handles, names = [*handles, _handle(INK, "o", "none")], [*names, "left out"]
    n_columns = len(names) if sum(len(name) + 4 for name in names) < ONE_LINE else 3
    legend = axes.figure.legend(
        handles, names, loc="outside upper left", ncols=n_columns, frameon=False, fontsize=8.5, labelcolor=INK,
        handletextpad=0.2, columnspacing=1.0, borderaxespad=0.2,
    )  # fmt: skip
    escape_legend(legend)


def _handle(edge: str, marker: str, face: str) -> Line2D:
    return Line2D([], [], marker=marker, linestyle="none", markersize=5, markeredgecolor=edge, markerfacecolor=face)


def _histogram(axes: Axes, result: SelectionResult, values: Float[Array, " classes"], what: str) -> None:
    source = _source_of_class(result)
    parts = [values[source == number] for number in range(len(_sources(result)))]
    edges = np.histogram_bin_edges(values, bins=min(40, max(8, len(values) // 4)))
    colors = [color for _, color in _sources(result)]
    axes.hist(parts, bins=edges.tolist(), stacked=True, color=colors, edgecolor=PAPER, linewidth=0.5)
    axes.set_xlabel(what)
    axes.set_ylabel("classes")


def _bin_edges(axes: Axes, selector: BinsSelector, order: Int[Array, " classes"]) -> None:
    """A line where a bin ends, and its name above."""
    ranked = selector.bin_[order]
    start = 0
    for number in dict.fromkeys(ranked.tolist()):
        n = int((ranked == number).sum())
        is_kept = bool(selector.class_weight_[selector.bin_ == number].any())
        name = "discarded" if number == DISCARDED else f"bin {number}"
        axes.text(start + (n + 1) / 2, 1.01, f"{name}, kept" if is_kept else name, ha="center", va="bottom",
                  fontsize=8.5, color=INK, transform=axes.get_xaxis_transform())  # fmt: skip
        if is_kept:
            axes.axvspan(start + 0.5, start + n + 0.5, color=LINE, alpha=0.25, linewidth=0, zorder=0)
        start += n
        if start < len(ranked):
            axes.axvline(start + 0.5, color=LINE, linewidth=0.8)


def _sources(result: SelectionResult) -> list[tuple[str, str]]:
    """Name and color of each data set; those beyond the colors share one."""
    names = list(dict.fromkeys(origin.dataset for origin in result.pool.origins))
    known = list(zip(names, COLORS, strict=False))
    n_more = len(names) - len(known)
    return known + ([(f"{n_more} more", OTHERS)] if n_more else [])


def _source_of_class(result: SelectionResult) -> Int[Array, " classes"]:
    names = list(dict.fromkeys(origin.dataset for origin in result.pool.origins))
    last = len(_sources(result)) - 1
    return np.array([min(names.index(origin.dataset), last) for origin in result.pool.origins])
