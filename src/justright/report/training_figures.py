"""What training did, epoch by epoch: a small panel for each number it reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from justright.report.drawing import INK, PAPER, color_of, escape_legend, style_axes
from justright.report.elements import short

Record = Mapping[str, Any]

N_COLUMNS = 3
MOST_PANELS = 12
LONGEST_NAME = 30


def reported(records: Sequence[Record]) -> list[str]:
    """The numbers that records hold, the loss first, the epoch left out."""
    names = dict.fromkeys(
        name
        for record in records
        for name, value in record.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
    return sorted((name for name in names if name != "epoch"), key=lambda name: name != "loss")


def draw_training(runs: Mapping[str, Sequence[Record]]) -> Figure:
    """One panel a number, one line a run."""
    names = list(dict.fromkeys(name for records in runs.values() for name in reported(records)))
    names = [name for name in names if name != "seconds"][:MOST_PANELS] or ["loss"]
    n_rows = -(-len(names) // N_COLUMNS)
    figure = Figure(figsize=(8.4, 0.5 + 1.9 * n_rows), layout="constrained", facecolor=PAPER)
    panels = figure.subplots(n_rows, N_COLUMNS, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        style_axes(axes)
        for number, (run, records) in enumerate(runs.items()):
            told = [(each.get("epoch", place), each[name]) for place, each in enumerate(records) if name in each]
            x, y = [epoch for epoch, _ in told], [value for _, value in told]
            marker = "o" if len(told) < 2 else ""  # a line of one point would not be seen
            axes.plot(x, y, color=color_of(number), linewidth=1.4, marker=marker, label=short(run, LONGEST_NAME))
        axes.set_title(name.replace("_", " "), loc="left", fontsize=9.5, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    for axes in panels[max(0, len(names) - N_COLUMNS) : len(names)]:
        axes.set_xlabel("epoch", fontsize=8.5)
    if len(runs) > 1:
        options = {"loc": "outside upper left", "ncols": 3, "frameon": False, "fontsize": 8.5, "labelcolor": INK}
        escape_legend(figure.legend(*panels[0].get_legend_handles_labels(), **options))
    return figure
