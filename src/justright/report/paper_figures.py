"""Tables and figures of the paper from our runs: Fig. 1, Fig. 3, what each row of a table changes, and the page."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from justright.benchmark.paper import EVERY, PaperTable
from justright.benchmark.tables import IN_DOUBT, TextTable, notes
from justright.report.drawing import COLORS, INK, add_legend, draw_changes, label_rows, panel_grid
from justright.report.elements import Table, render, short
from justright.report.run_figures import TAKEN_FOR
from justright.utils.files import write_text

PART = re.compile(r"(?P<transfer>transfer, )?part (?P<number>\d+) of (?P<count>\d+)")
DISCOVERY, TRANSFER = COLORS[5], COLORS[1]  # pink and orange, as in the paper
LONGEST_NAME = 34
N_COLUMNS = 3  # of panels

Drawn = tuple[Figure | None, str]  # a figure, None without results, and its caption


def write_suite_page(table: PaperTable, tables: Sequence[TextTable], claims: TextTable | None, out: Path) -> None:
    """Write the page: claims and figure first, then the other tables and doubts."""
    drawn, caption = draw_paper(table)
    parts = [(each.title, Table(each.columns, each.rows)) for each in tables]
    judged = claims and Table(claims.columns, claims.rows)
    figure = {"drawn": drawn, "caption": caption}
    about = {"table": table, "notes": notes(table), "in_doubt": IN_DOUBT}
    write_text(out, render("suite.html", claims=judged, parts=parts, **figure, **about))


def draw_paper(table: PaperTable) -> Drawn:
    """The figure of a suite: Fig. 1 and Fig. 3 as in the paper, for other tables the change of each row."""
    if table.is_count or not table.rows:
        return None, ""
    if any(PART.fullmatch(row.row) for row in table.rows):
        return draw_parts(table)
    return draw_wrong(table) if "new_as_old" in table.groups else draw_changes_of_rows(table)


def draw_parts(table: PaperTable) -> Drawn:
    """Fig. 1: accuracy by similarity of the labeled data, one panel per target; discovery and transfer."""
    targets = _targets_with_results(table)
    figure, panels = _panels(targets, 2.3)
    for axes, target in zip(panels, targets, strict=True):
        for is_guide in (False, True):
            _line(axes, table, target, "new", DISCOVERY, "discovery: New", is_guide)
            _line(axes, table, target, "probe", TRANSFER, "transfer: linear probe", is_guide)
        axes.set_title(_title(table, target), loc="left", fontsize=9.5, color=INK)
        axes.set_xticks([])
        axes.margins(x=0.12)
    for axes in panels[::N_COLUMNS]:
        axes.set_ylabel("accuracy %", fontsize=8.5)
    figure.supxlabel("labeled data: farthest from the target  \u2192  nearest to it", fontsize=8.5, color=INK)
    entries = {name: line for axes in panels for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    add_legend(figure, list(entries.values()), list(entries), ncols=4)
    caption = "Fig. 1 of the paper: the pool in parts of equal size by their distance to the target."
    return figure, f"{caption} Bars are standard deviations over seeds."


def _line(axes: Axes, table: PaperTable, target: str, group: str, color: str, name: str, is_guide: bool) -> None:
    """One point per part, the farthest first; transfer is in the rows that learn from labels only."""
    points = {}
    for row in (each for each in table.rows if each.is_guide == is_guide):
        match = PART.fullmatch(row.row)
        if match and bool(match["transfer"]) == (group == "probe") and (target, group) in row.cells:
            points[int(match["count"]) - int(match["number"])] = row.cells[target, group]
    places = sorted(points)
    spread = [points[place].spread if math.isfinite(points[place].spread) else 0.0 for place in places]
    if places:
        style: dict[str, Any] = {"color": color, "linestyle": "--" if is_guide else "-", "markersize": 5}
        label = f"{name}{', pool as a guide' * is_guide}"
        means = [points[place].mean for place in places]
        axes.errorbar(places, means, spread, marker="o", capsize=2, elinewidth=1, linewidth=1.6, label=label, **style)


def draw_wrong(table: PaperTable) -> Drawn:
    """Fig. 3: wrong New images by predicted side; one bar per labeled set, one panel per target."""
    targets = _targets_with_results(table)
    figure, panels = _panels(targets, 0.9 + 0.24 * len(table.rows), sharex=True, sharey=True)
    kinds = {"new_as_old": TAKEN_FOR["n_as_old"], "new_as_new": TAKEN_FOR["n_as_new"]}
    for axes, target in zip(panels, targets, strict=True):
        begin = [0.0] * len(table.rows)
        for group, (name, color) in kinds.items():
            cells = [row.cells.get((target, group)) for row in table.rows]
            shares = [0.0 if cell is None else cell.mean for cell in cells]
            axes.barh(range(len(shares)), shares, left=begin, color=color, height=0.7, label=f"taken for {name}")
            begin = [left + share for left, share in zip(begin, shares, strict=True)]
        axes.set_title(_title(table, target), loc="left", fontsize=9.5, color=INK)
        axes.set_xlabel("% of New", fontsize=8.5)
        axes.tick_params(labelbottom=True)  # also above an empty panel
    names = [f"{row.row}{' (guide)' * row.is_guide}" for row in table.rows]
    label_rows(panels[0], range(len(names)), [short(name, LONGEST_NAME) for name in names])
    add_legend(figure, *panels[0].get_legend_handles_labels(), ncols=2)
    caption = "Fig. 3 of the paper: New images that are wrong, by what they were taken for."
    return figure, f"{caption} A row without a bar has no such figures yet."


def draw_changes_of_rows(table: PaperTable) -> Drawn:
    """The change of each row on New, with its interval; hollow marks are the paper's."""
    place_of = EVERY if EVERY in table.targets else table.targets[0]
    cells = [(row, row.cells.get((place_of, "new"))) for row in table.rows]
    changes = [(row, cell, cell.change) for row, cell in cells if cell is not None and cell.change is not None]
    if not changes:
        return None, ""
    names = [short(row.name, LONGEST_NAME) for row, *_ in changes]
    colors = [COLORS[2] if row.is_guide else COLORS[0] for row, *_ in changes]
    figure, axes = draw_changes(names, [change for *_, change in changes], colors)
    for place, (_, cell, _) in enumerate(changes):
        if cell.paper_change is not None:
            axes.plot([cell.paper_change], [place], "D", color=COLORS[1], markersize=5, fillstyle="none")
    against = " or ".join(dict.fromkeys(row.against for row, *_ in changes))
    axes.set_xlabel(f"points of New against {against}", fontsize=8.5)
    return figure, f"{place_of}: change of New with its 95 % interval over pairs of runs; hollow: the paper."


def _panels(targets: Sequence[str], height: float, **how: Any) -> tuple[Figure, list[Axes]]:
    n_columns = min(len(targets), N_COLUMNS)
    return panel_grid(len(targets), n_columns, 2.3 * n_columns + 1.5, height, **how)


def _targets_with_results(table: PaperTable) -> list[str]:
    """The targets with results."""
    return [target for target in table.targets if any(key[0] == target for row in table.rows for key in row.cells)]


def _title(table: PaperTable, target: str) -> str:
    here = table.stands_for.get(target, "")
    return target if here in ("", target) else f"{target}: {here}"
