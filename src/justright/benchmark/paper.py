"""The tables of the paper: the numbers that it prints, and our runs in the same layout."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from justright.benchmark.results import Line, shown_value
from justright.benchmark.suite import Suite, SuiteSetting
from justright.benchmark.summary import PERCENT, Difference, interval
from justright.evaluation.intervals import spread
from justright.evaluation.scores import GROUPS

ROUNDING = 0.1001  # two numbers that are rounded to one decimal each
EVERY = "mean over targets"
MISPRINTS = {("tab4", "xcon", "bins", "cars"): {"old": "Old's change is printed as -1..7, read as -1.7 here"}}


@dataclass(frozen=True)
class PaperRow:
    """One method with one selection on one target, in percent, as printed. Groups that are not printed are missing."""

    table: str  # tab1 to tab6 and taba1 to taba8, the names of the suites
    method: str  # our name, as for the next two
    selection: str  # may include a parameter, as in "bins, L 3"
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

    Either All is not between Old and New (then any of the three may be wrong), or a change differs from that of the
    printed numbers or is no number, or k-means, which uses no labels, differs from itself in another table.
    """
    reasons: dict[str, list[str]] = {group: [] for group in row.accuracy}
    for group, misprint in MISPRINTS.get((row.table, row.method, row.selection, row.target), {}).items():
        reasons[group].append(misprint)
    if len(row.accuracy) == len(GROUPS):
        low, high = sorted((row.accuracy["old"], row.accuracy["new"]))
        if not low <= row.accuracy["all"] <= high:
            for of_group in reasons.values():
                of_group.append(f"All {row.accuracy['all']:g} is not between Old and New ({low:g} to {high:g})")
    # in some tables the base is Beta with alpha = beta = 1, which the paper equates with no selection
    selection = "beta, alpha 1 beta 1" if row.table in ("tab5", "taba1") else "none"
    wanted = row.table, row.method, selection, row.target
    base = [other for other in rows if (other.table, other.method, other.selection, other.target) == wanted]
    for group, printed in row.change.items():
        if base and abs((change := row.accuracy[group] - base[0].accuracy[group]) - printed) >= ROUNDING / 2:
            text = f"{group.capitalize()} is printed as {printed:+g} where its numbers give {change:+.1f}"
            reasons[group].append(text)
    for other in rows if row.method == "kmeans" else ():
        for group in reasons if (other.method, other.target) == (row.method, row.target) else ():
            if (also := other.accuracy.get(group, row.accuracy[group])) != row.accuracy[group]:
                text = f"{group.capitalize()} {row.accuracy[group]:g} is {also:g} in {other.table}, on the same images"
                reasons[group].append(text)
    return {group: of_group for group, of_group in reasons.items() if of_group}


@dataclass(frozen=True)
class Cell:
    """One number of a table, in percent; counts of images as they are."""

    mean: float
    spread: float  # standard deviation over seeds, NaN for a single one
    n: int  # runs
    change: Difference | None = None  # from the base row, paired by seed, with its 95 % interval
    paper: float | None = None
    paper_change: float | None = None
    doubts: tuple[str, ...] = ()  # why the paper's figure cannot be right as printed


@dataclass(frozen=True)
class PaperTableRow:
    """A method with one selection, or one set of labels."""

    method: str
    row: str
    is_guide: bool
    against: str = ""  # the base row of its changes; empty for that row itself
    n_runs: int = 0
    n_wanted: int = 0  # runs of the suite
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)  # by target and group

    @property
    def name(self) -> str:
        """The name to show."""
        return f"{self.method}, {self.row}{' (guide)' * self.is_guide}"


@dataclass(frozen=True)
class PaperTable:
    """Rows, and the targets and groups that are its columns."""

    name: str
    about: str
    profile: str
    targets: tuple[str, ...]  # the paper's, then EVERY if there are several
    groups: tuple[str, ...]
    stands_for: dict[str, str]  # data set of this profile, by the paper's target
    rows: tuple[PaperTableRow, ...]
    is_count: bool = False

    @property
    def doubts(self) -> list[str]:
        """Why figures of the paper that are shown cannot be right."""
        cells = [(row, target, cell) for row in self.rows for (target, _), cell in row.cells.items()]
        shown = [(row, target, cell) for row, target, cell in cells if target != EVERY]
        names = [target if self.is_count else f"{row.name}, {target}" for row, target, _ in shown]
        texts = [f"{name}: {text}" for name, (*_, cell) in zip(names, shown, strict=True) for text in cell.doubts]
        return list(dict.fromkeys(texts))

    def label(self, target: str) -> str:
        """A target of the paper, and the data set used here."""
        here = self.stands_for.get(target, "")
        return target if here in ("", target) else f"{target} (here: {here})"


Values = dict[tuple[str, int], float]  # by target and seed


class Printed(NamedTuple):
    """The paper's figure for a cell."""

    value: float
    change: float | None
    doubts: Sequence[str]


def paper_table(suite: Suite, lines: Sequence[Line]) -> PaperTable:
    """The runs of a suite as a table, in the order of the suite."""
    targets = tuple(dict.fromkeys(suite.columns.values()))
    stands_for = {target: problem.partition(", ")[0] for problem, target in suite.columns.items()}
    rows = [row for setting in suite.settings if (row := _row(suite, setting, lines, targets)).cells]
    shown = (*targets, EVERY) if len(targets) > 1 and not suite.only_counts else targets
    return PaperTable(
        suite.name, suite.about, suite.profile, shown, suite.groups, stands_for, tuple(rows), suite.only_counts
    )


def values_of(suite: Suite, lines: Sequence[Line], setting: str, group: str) -> Values:
    """The runs of a setting that have a value of the group, in percent."""
    scale = 1.0 if suite.only_counts else PERCENT
    values = {
        (suite.columns[line["problem"]], line["seed"]): shown_value(line, group)
        for line in lines
        if line["setting"] == setting
    }
    return {key: scale * value for key, value in values.items() if value is not None}


def _row(suite: Suite, setting: SuiteSetting, lines: Sequence[Line], targets: Sequence[str]) -> PaperTableRow:
    base = _base(suite, setting)
    cells = {}
    for group in suite.groups:
        own = values_of(suite, lines, setting.name, group)
        against = {} if base is setting else values_of(suite, lines, base.name, group)
        for target in (*targets, EVERY):
            wanted = targets if target == EVERY else (target,)
            # only seeds that all targets have: means over different targets are not comparable
            seeds = {seed for _, seed in own if all((name, seed) in own for name in wanted)}
            values = {key: value for key, value in own.items() if key[0] in wanted and key[1] in seeds}
            if values:
                changes = [value - against[key] for key, value in values.items() if key in against]
                printed = [] if setting.is_guide else list(_printed(suite, setting, target, wanted, group))
                cells[target, group] = _cell(values, changes, printed)
    n_wanted = sum(own is setting for problem in suite.problems for own, _ in suite.runs_of(problem))
    n_runs = sum(line["setting"] == setting.name for line in lines)
    against_row = "" if base is setting else base.row
    return PaperTableRow(setting.method, setting.row, setting.is_guide, against_row, n_runs, n_wanted, cells)


def _base(suite: Suite, setting: SuiteSetting) -> SuiteSetting:
    """The setting to compare with: no selection; if there is no such row, plain Bins, or the first row."""
    alike = [other for other in suite.settings if (other.method, other.is_guide) == (setting.method, setting.is_guide)]
    return next((other for row in ("none", "bins") for other in alike if other.row == row), alike[0])


def _cell(values: Values, changes: list[float], printed: list[Printed]) -> Cell:
    """Average over targets for each seed first: the spread is that over seeds, not over targets."""
    by_seed: dict[int, list[float]] = {}
    for (_, seed), value in sorted(values.items(), key=lambda item: item[0][1]):
        by_seed.setdefault(seed, []).append(value)
    means = [float(np.mean(of_seed)) for of_seed in by_seed.values()]
    paper = float(np.mean([figure.value for figure in printed])) if printed else None
    moved = [figure.change for figure in printed if figure.change is not None]
    reasons = tuple(text for figure in printed for text in figure.doubts)
    paper_change = float(np.mean(moved)) if moved and len(moved) == len(printed) else None
    return Cell(float(np.mean(means)), spread(means), len(values), interval(changes), paper, paper_change, reasons)


def _printed(suite: Suite, setting: SuiteSetting, target: str, wanted: Sequence[str], group: str) -> Iterator[Printed]:
    """The paper's figures for a cell; none unless it prints all of them."""
    if suite.printed:
        if target in suite.printed:
            reason = suite.doubted.get(target, {}).get(group)
            value = suite.printed[target][suite.groups.index(group)]
            yield Printed(float(value), None, [reason] if reason else [])
        return
    key = suite.name, setting.method, suite.printed_as.get(setting.row, setting.row)
    rows = paper_rows()
    printed = [
        row
        for row in rows
        if (row.table, row.method, row.selection) == key and row.target in wanted and group in row.accuracy
    ]
    if len(printed) == len(wanted):
        for row in printed:
            yield Printed(row.accuracy[group], row.change.get(group), doubts(row, rows).get(group, []))
