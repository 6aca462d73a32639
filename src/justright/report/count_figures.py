"""How the number of categories was found, as a figure."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from justright.estimation import CategoryCounter

COLOR = "#2f6db3"
CHOSEN = "#d1603d"


def draw_counts(
    counters: Mapping[str, CategoryCounter], intervals: Mapping[str, tuple[int, int]] | None = None
) -> Figure:
    """What each counter looked at on its way, the K it chose, and the interval around it where there is one."""
    figure = Figure(figsize=(5.0 * len(counters), 3.4), layout="constrained")
    for axes, (name, counter) in zip(
        figure.subplots(1, len(counters), squeeze=False)[0], counters.items(), strict=True
    ):
        x_name, y_name = counter.curve_axes
        k = counter.n_categories_
        axes.plot(counter.curve_[:, 0], counter.curve_[:, 1], "o-", color=COLOR, markersize=4, linewidth=1.2)
        is_k_across = x_name == "K"
        (axes.axvline if is_k_across else axes.axhline)(k, color=CHOSEN, linewidth=1.5)
        if intervals and name in intervals:
            (axes.axvspan if is_k_across else axes.axhspan)(*intervals[name], color=CHOSEN, alpha=0.15, linewidth=0)
        axes.set_title(f"{name}: K = {k}", loc="left", fontsize=11, fontweight="bold")
        axes.set_xlabel(x_name)
        axes.set_ylabel(y_name)
        for axis in (axes.xaxis, axes.yaxis)[: 1 if is_k_across else 2]:  # K and rounds are whole numbers
            axis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
    return figure
