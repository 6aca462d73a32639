"""A table of the paper from our runs: mean and spread over seeds, change against none, the paper's beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from justright.benchmark.paper_numbers import doubts, paper_rows
from justright.benchmark.suite import Suite, SuiteSetting
from justright.benchmark.suite_line import Line, shown_value
from justright.benchmark.suite_table import Difference, interval
from justright.evaluation.intervals import spread

EVERY = "mean over targets"
PERCENT = 100.0


@dataclass(frozen=True)
class Cell:
    """One number of a table, in percent; counts of images as they are."""

    mean: float
    spread: float  # standard deviation over seeds, NaN from one
    n: int  # runs
    change: Difference | None = None  # against the row it is compared with, paired by seed; with its 95 % interval
    paper: float | None = None
    paper_change: float | None = None
    doubts: tuple[str, ...] = ()  # why the paper's figure cannot be right as printed


@dataclass(frozen=True)
class PaperTableRow:
    """A method with one selection, or one set of labels."""

    method: str
    row: str
    is_guide: bool
    against: str = ""  # the row that its changes are against; empty for that row itself
    n_runs: int = 0
    n_wanted: int = 0  # runs that the suite asks for
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)  # by target and group

    @property
    def name(self) -> str:
        """Its name for a reader."""
        return f"{self.method}, {self.row}{' (guide)' * self.is_guide}"


@dataclass(frozen=True)
class PaperTable:
    """Rows, and the targets and groups that make its columns."""

    name: str
    about: str
    profile: str
    targets: tuple[str, ...]  # the paper's, then EVERY where there are several
    groups: tuple[str, ...]
    stands_for: dict[str, str]  # by the paper's target: what it is in this profile
    rows: tuple[PaperTableRow, ...]
    is_count: bool = False

    @property
    def doubts(self) -> list[str]:
        """What speaks against figures of the paper that are shown."""
        cells = [(row, target, cell) for row in self.rows for (target, _), cell in row.cells.items()]
        shown = [(row, target, cell) for row, target, cell in cells if target != EVERY]
        names = [target if self.is_count else f"{row.name}, {target}" for row, target, _ in shown]
        said = [f"{name}: {text}" for name, (*_, cell) in zip(names, shown, strict=True) for text in cell.doubts]
        return list(dict.fromkeys(said))

    def label(self, target: str) -> str:
        """A target of the paper, and what stands for it here."""
        here = self.stands_for.get(target, "")
        return target if here in ("", target) else f"{target} (here: {here})"


Values = dict[tuple[str, int], float]  # by target and seed


class Printed(NamedTuple):
    """What the paper says of a cell."""

    value: float
    change: float | None
    doubts: Sequence[str]


def paper_table(suite: Suite, lines: Sequence[Line]) -> PaperTable:
    """What was run of a suite, in its order."""
    targets = tuple(dict.fromkeys(suite.columns.values()))
    stands_for = {target: problem.partition(", ")[0] for problem, target in suite.columns.items()}
    rows = [row for setting in suite.settings if (row := _row(suite, setting, lines, targets)).cells]
    shown = (*targets, EVERY) if len(targets) > 1 and not suite.only_counts else targets
    return PaperTable(
        suite.name, suite.about, suite.profile, shown, suite.groups, stands_for, tuple(rows), suite.only_counts
    )


def values_of(suite: Suite, lines: Sequence[Line], setting: str, group: str) -> Values:
    """The runs of a setting, in percent; what a group lacks is left out."""
    scale = 1.0 if suite.only_counts else PERCENT
    found = {
        (suite.columns[line["problem"]], line["seed"]): shown_value(line, group)
        for line in lines
        if line["setting"] == setting
    }
    return {key: scale * value for key, value in found.items() if value is not None}


def _row(suite: Suite, setting: SuiteSetting, lines: Sequence[Line], targets: Sequence[str]) -> PaperTableRow:
    base = _base(suite, setting)
    cells = {}
    for group in suite.groups:
        own = values_of(suite, lines, setting.name, group)
        against = {} if base is setting else values_of(suite, lines, base.name, group)
        for target in (*targets, EVERY):
            wanted = targets if target == EVERY else (target,)
            # only seeds that every target was run with: a mean over some of them is not to be compared
            seeds = {seed for _, seed in own if all((each, seed) in own for each in wanted)}
            found = {key: value for key, value in own.items() if key[0] in wanted and key[1] in seeds}
            if found:
                changes = [value - against[key] for key, value in found.items() if key in against]
                printed = [] if setting.is_guide else list(_printed(suite, setting, target, wanted, group))
                cells[target, group] = _cell(found, changes, printed)
    n_wanted = sum(each is setting for problem in suite.problems for each, _ in suite.runs_of(problem))
    n_runs = sum(line["setting"] == setting.name for line in lines)
    against_row = "" if base is setting else base.row
    return PaperTableRow(setting.method, setting.row, setting.is_guide, against_row, n_runs, n_wanted, cells)


def _base(suite: Suite, setting: SuiteSetting) -> SuiteSetting:
    """What a setting is compared with: no selection; where that is no row, Bins as it is, or the first row."""
    alike = [each for each in suite.settings if (each.method, each.is_guide) == (setting.method, setting.is_guide)]
    return next((each for row in ("none", "bins") for each in alike if each.row == row), alike[0])


def _cell(found: Values, changes: list[float], printed: list[Printed]) -> Cell:
    """Seed by seed first: the spread of a mean over targets is not that between targets."""
    seeds = sorted({seed for _, seed in found})
    values = [float(np.mean([value for (_, own), value in found.items() if own == seed])) for seed in seeds]
    paper = float(np.mean([each.value for each in printed])) if printed else None
    moved = [each.change for each in printed if each.change is not None]
    said = tuple(text for each in printed for text in each.doubts)
    by_paper = float(np.mean(moved)) if moved and len(moved) == len(printed) else None
    return Cell(float(np.mean(values)), spread(values), len(found), interval(changes), paper, by_paper, said)


def _printed(suite: Suite, setting: SuiteSetting, target: str, wanted: Sequence[str], group: str) -> Iterator[Printed]:
    """What the paper prints for a cell; nothing where it does not print all of it."""
    if suite.printed:
        if target in suite.printed:
            said = suite.doubted.get(target, {}).get(group)
            value = suite.printed[target][suite.groups.index(group)]
            yield Printed(float(value), None, [said] if said else [])
        return
    key = suite.name, setting.method, suite.printed_as.get(setting.row, setting.row)
    rows = paper_rows()
    found = [
        row
        for row in rows
        if (row.table, row.method, row.selection) == key and row.target in wanted and group in row.accuracy
    ]
    if len(found) == len(wanted):
        for row in found:
            yield Printed(row.accuracy[group], row.change.get(group), doubts(row, rows).get(group, []))
