"""What each setting of a suite changes against its baseline, as dots with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from justright.benchmark.suite_table import SettingRow
from justright.report.drawing import color_of, style_axes
from justright.report.names import short
from justright.report.svg import INK, LINE, PAPER


def draw_suite(rows: Sequence[SettingRow], by_problem: Mapping[str, Sequence[float]], baseline: str) -> Figure:
    """One line a setting: the mean change of All with its interval over problems, and a small dot a problem."""
    shown = [row for row in rows if row.all_difference is not None]
    figure = Figure(figsize=(7.2, 1.0 + 0.3 * len(shown)), layout="constrained", facecolor=PAPER)
    axes = figure.subplots()
    style_axes(axes)
    axes.axvline(0, color=LINE, linewidth=1)
    for place, row in enumerate(shown):
        mean, low, high = (100 * value for value in row.all_difference or ())
        axes.plot([low, high], [place, place], color=color_of(0), linewidth=1.8)
        axes.plot([mean], [place], "o", color=color_of(0), markersize=6)
        dots = [100 * value for value in by_problem[row.setting]]
        axes.plot(dots, [place] * len(dots), ".", color=INK, markersize=4, alpha=0.55)
    axes.set_yticks(range(len(shown)), [short(row.setting, 40) for row in shown])
    axes.invert_yaxis()
    what = f"points of All against {baseline}; dots are problems, lines 95 % intervals over them"
    axes.set_xlabel(what, fontsize=8.5)
    return figure
