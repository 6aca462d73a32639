"""Every accuracy that the paper prints, to be shown beside ours, and what speaks against some of them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from justright.evaluation.scores import GROUPS

ROUNDING = 0.1001  # two numbers that are rounded to one decimal each
MISPRINTS = {("tab4", "xcon", "bins", "cars"): {"old": "Old's change is printed as -1..7, read as -1.7 here"}}


@dataclass(frozen=True)
class PaperRow:
    """One method with one selection on one target, in percent, as printed; a group that is not printed is missing."""

    table: str  # tab1 to tab6 and taba1 to taba8, as suites are called
    method: str  # by our name, as are the next two
    selection: str  # may say what differs, as in "bins, L 3"
    target: str
    accuracy: dict[str, float]  # by group: all, old, new
    change: dict[str, float]  # printed beside it, against no selection


@cache
def paper_rows() -> tuple[PaperRow, ...]:
    """The rows of all tables."""
    text = files(__package__).joinpath("paper_numbers.csv").read_text(encoding="utf-8")
    rows = []
    for cells in csv.DictReader(text.splitlines()):
        key = (cells["table"], cells["method"], cells["selection"], cells["target"])
        accuracy = {group: float(cells[group]) for group in GROUPS if cells[group]}
        change = {group: float(cells[f"change {group}"]) for group in GROUPS if cells[f"change {group}"]}
        rows.append(PaperRow(*key, accuracy, change))
    return tuple(rows)


def doubts(row: PaperRow, rows: Sequence[PaperRow]) -> dict[str, list[str]]:
    """Why figures of a row cannot be right as printed, by group.

    All lies outside Old and New (then nobody knows which of the three is wrong), a change is not what the numbers give
    or is no number, or k-means, which sees no labels, differs from itself in another table.
    """
    found: dict[str, list[str]] = {group: [] for group in row.accuracy}
    for group, misprint in MISPRINTS.get((row.table, row.method, row.selection, row.target), {}).items():
        found[group].append(misprint)
    if len(row.accuracy) == len(GROUPS):
        low, high = sorted((row.accuracy["old"], row.accuracy["new"]))
        if not low <= row.accuracy["all"] <= high:
            for said in found.values():
                said.append(f"All {row.accuracy['all']:g} is not between Old and New ({low:g} to {high:g})")
    # in some tables the base is Beta without a slope, in the paper the same as no selection
    selection = "beta, alpha 1 beta 1" if row.table in ("tab5", "taba1") else "none"
    wanted = row.table, row.method, selection, row.target
    base = [other for other in rows if (other.table, other.method, other.selection, other.target) == wanted]
    for group, printed in row.change.items():
        if base and abs((change := row.accuracy[group] - base[0].accuracy[group]) - printed) >= ROUNDING / 2:
            found[group].append(f"{group.capitalize()} is printed as {printed:+g} where its numbers give {change:+.1f}")
    for other in rows if row.method == "kmeans" else ():
        for group in found if (other.method, other.target) == (row.method, row.target) else ():
            if (also := other.accuracy.get(group, row.accuracy[group])) != row.accuracy[group]:
                text = f"{group.capitalize()} {row.accuracy[group]:g} is {also:g} in {other.table}, on the same images"
                found[group].append(text)
    return {group: said for group, said in found.items() if said}
