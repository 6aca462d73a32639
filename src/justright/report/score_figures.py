"""Scores as dots with their intervals: those of several runs, and what each setting of a suite changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from justright.benchmark.suite_table import SettingRow
from justright.report.comparison import GROUPS, Comparison
from justright.report.drawing import COLORS, INK, LINE, PAPER, style_axes
from justright.report.elements import short

MOST_RUNS = 40


def draw_scores(comparison: Comparison) -> Figure:
    """One line a run, one panel for All, Old and New each; the baseline in another color."""
    runs = [run for run in comparison.runs if run.scores is not None][:MOST_RUNS]
    figure = Figure(figsize=(8.4, 0.9 + 0.32 * len(runs)), layout="constrained", facecolor=PAPER)
    panels = figure.subplots(1, len(GROUPS), sharey=True)
    for axes, group in zip(panels, GROUPS, strict=True):
        style_axes(axes)
        axes.grid(axis="x", color=LINE, linewidth=0.5, alpha=0.6)
        for place, run in enumerate(runs):
            assert run.scores is not None
            value = 100 * getattr(run.scores, group)
            if math.isnan(value):
                continue
            color = COLORS[1] if run.settings.get("selector") == comparison.baseline else COLORS[0]
            if group in run.scores.intervals:
                low, high = run.scores.intervals[group]
                axes.plot([100 * low, 100 * high], [place, place], color=color, linewidth=1.6)
            axes.plot([value], [place], "o", color=color, markersize=5)
        axes.set_title(group.capitalize(), loc="left", fontsize=10, color=INK)
        axes.set_xlabel("accuracy %", fontsize=8.5)
        axes.margins(y=0.2)
    _name_lines(panels[0], [short(run.name, 28) for run in runs])
    return figure


def draw_suite(rows: Sequence[SettingRow], by_problem: Mapping[str, Sequence[float]], baseline: str) -> Figure:
    """One line a setting: the mean change of All with its interval over problems, and a small dot a problem."""
    shown = [row for row in rows if row.all_difference is not None]
    figure = Figure(figsize=(7.2, 1.0 + 0.3 * len(shown)), layout="constrained", facecolor=PAPER)
    axes = figure.subplots()
    style_axes(axes)
    axes.axvline(0, color=LINE, linewidth=1)
    for place, row in enumerate(shown):
        mean, low, high = (100 * value for value in row.all_difference or ())
        axes.plot([low, high], [place, place], color=COLORS[0], linewidth=1.8)
        axes.plot([mean], [place], "o", color=COLORS[0], markersize=6)
        dots = [100 * value for value in by_problem[row.setting]]
        axes.plot(dots, [place] * len(dots), ".", color=INK, markersize=4, alpha=0.55)
    _name_lines(axes, [short(row.setting, 40) for row in shown])
    what = f"points of All against {baseline}; dots are problems, lines 95 % intervals over them"
    axes.set_xlabel(what, fontsize=8.5)
    return figure


def _name_lines(axes: Axes, names: Sequence[str]) -> None:
    """Names from the top down, as they are written: a dollar sign in one is no formula."""
    axes.set_yticks(range(len(names)), names)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.invert_yaxis()
