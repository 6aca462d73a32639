"""What counting, training and scoring gave, as figures of one run or of several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from justright.benchmark.summary import SettingRow
from justright.evaluation.scores import GROUPS
from justright.report.comparison import Comparison
from justright.report.drawing import COLORS, INK, LINE, add_legend, color_of, name_rows, panel_grid, quiet_panels
from justright.report.elements import short

COLOR, CHOSEN = COLORS[:2]
N_COLUMNS, MOST_PANELS = 3, 12  # of the figure of training
MOST_RUNS = 40
LONGEST_NAME = 30

Record = Mapping[str, Any]


def draw_counts(estimates: Mapping[str, Record]) -> Figure:
    """What each counter looked at on its way, the K it chose, and the interval around it where there is one.

    `estimates` are those that `justright estimate --out` writes, by the name of the counter.
    """
    figure, panels = quiet_panels(5.0 * len(estimates), 3.4, (1, len(estimates)))
    for axes, (name, said) in zip(panels, estimates.items(), strict=True):
        (x_name, y_name), k = said["axes"], said["n_categories"]
        x, y = np.asarray(said["curve"], dtype=np.float64).reshape(-1, 2).T
        axes.plot(x, y, "o-", color=COLOR, markersize=4, linewidth=1.2)
        is_k_across = x_name == "K"
        (axes.axvline if is_k_across else axes.axhline)(k, color=CHOSEN, linewidth=1.5)
        if interval := said.get("interval"):
            (axes.axvspan if is_k_across else axes.axhspan)(*interval, color=CHOSEN, alpha=0.15, linewidth=0)
        axes.set_title(f"{name}: K = {k}", loc="left", fontsize=10.5, fontweight="bold")
        axes.set_xlabel(x_name, fontsize=9.5)
        axes.set_ylabel(y_name, fontsize=9.5)
        for axis in (axes.xaxis, axes.yaxis)[: 1 if is_k_across else 2]:  # K and rounds are whole numbers
            axis.set_major_locator(MaxNLocator(integer=True))
    return figure


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
    figure, panels = panel_grid(len(names), N_COLUMNS, 8.4, 1.9)
    for axes, name in zip(panels, names, strict=True):
        for number, (run, records) in enumerate(runs.items()):
            told = [(each.get("epoch", place), each[name]) for place, each in enumerate(records) if name in each]
            x, y = [epoch for epoch, _ in told], [value for _, value in told]
            marker = "o" if len(told) < 2 else ""  # a line of one point would not be seen
            axes.plot(x, y, color=color_of(number), linewidth=1.4, marker=marker, label=short(run, LONGEST_NAME))
        axes.set_title(name.replace("_", " "), loc="left", fontsize=9.5, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in panels[-N_COLUMNS:]:
        axes.set_xlabel("epoch", fontsize=8.5)
    if len(runs) > 1:
        add_legend(figure, *panels[0].get_legend_handles_labels(), ncols=3)
    return figure


def draw_scores(comparison: Comparison) -> Figure:
    """One line a run, one panel for All, Old and New each; the baseline in another color."""
    runs = [(run, run.scores) for run in comparison.runs if run.scores is not None][:MOST_RUNS]
    figure, panels = quiet_panels(8.4, 0.9 + 0.32 * len(runs), (1, len(GROUPS)), sharey=True)
    for axes, group in zip(panels, GROUPS, strict=True):
        axes.grid(axis="x", color=LINE, linewidth=0.5, alpha=0.6)
        for place, (run, scores) in enumerate(runs):
            value = 100 * getattr(scores, group)
            if math.isnan(value):
                continue
            color = COLORS[1] if run.settings.get("selector") == comparison.baseline else COLORS[0]
            if group in scores.intervals:
                low, high = scores.intervals[group]
                axes.plot([100 * low, 100 * high], [place, place], color=color, linewidth=1.6)
            axes.plot([value], [place], "o", color=color, markersize=5)
        axes.set_title(group.capitalize(), loc="left", fontsize=10, color=INK)
        axes.set_xlabel("accuracy %", fontsize=8.5)
        axes.margins(y=0.2)
    name_rows(panels[0], range(len(runs)), [short(run.name, 28) for run, _ in runs])
    return figure


def draw_suite(rows: Sequence[SettingRow], by_problem: Mapping[str, Sequence[float]], baseline: str) -> Figure:
    """One line a setting: the mean change of All with its interval over problems, and a small dot a problem."""
    shown = [row for row in rows if row.all_difference is not None]
    figure, (axes,) = quiet_panels(7.2, 1.0 + 0.3 * len(shown))
    axes.axvline(0, color=LINE, linewidth=1)
    for place, row in enumerate(shown):
        mean, low, high = (100 * value for value in row.all_difference or ())
        axes.plot([low, high], [place, place], color=COLORS[0], linewidth=1.8)
        axes.plot([mean], [place], "o", color=COLORS[0], markersize=6)
        dots = [100 * value for value in by_problem[row.setting]]
        axes.plot(dots, [place] * len(dots), ".", color=INK, markersize=4, alpha=0.55)
    name_rows(axes, range(len(shown)), [short(row.setting, 40) for row in shown])
    said = f"points of All against {baseline}; dots are problems, lines 95 % intervals over them"
    axes.set_xlabel(said, fontsize=8.5)
    return figure
