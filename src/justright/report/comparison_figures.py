"""Scores of several runs as dots with their intervals."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from justright.report.comparison import GROUPS, Comparison
from justright.report.drawing import COLORS, style_axes
from justright.report.names import short
from justright.report.svg import INK, LINE, PAPER

MOST_RUNS = 40
LONGEST_NAME = 28


def draw_scores(comparison: Comparison) -> Figure:
    """One line a run, one panel for All, Old and New each; the baseline in another color."""
    runs = [run for run in comparison.runs if run.scores is not None][:MOST_RUNS]
    figure = Figure(figsize=(8.4, 0.9 + 0.32 * len(runs)), layout="constrained", facecolor=PAPER)
    panels = figure.subplots(1, len(GROUPS), sharey=True)
    for axes, group in zip(panels, GROUPS, strict=True):
        style_axes(axes)
        axes.grid(axis="x", color=LINE, linewidth=0.5, alpha=0.6)
        for place, run in enumerate(runs):
            value = 100 * getattr(run.scores, group)
            if math.isnan(value):
                continue
            color = COLORS[1] if run.settings.get("selector") == comparison.baseline else COLORS[0]
            assert run.scores is not None
            if group in run.scores.intervals:
                low, high = run.scores.intervals[group]
                axes.plot([100 * low, 100 * high], [place, place], color=color, linewidth=1.6)
            axes.plot([value], [place], "o", color=color, markersize=5)
        axes.set_title(group.capitalize(), loc="left", fontsize=10, color=INK)
        axes.set_xlabel("accuracy %", fontsize=8.5)
        axes.margins(y=0.2)
    panels[0].set_yticks(range(len(runs)), [short(run.name, LONGEST_NAME) for run in runs])
    for label in panels[0].get_yticklabels():
        label.set_parse_math(False)
    panels[0].invert_yaxis()
    return figure
