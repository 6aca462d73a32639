"""A table of the paper from our runs: mean and spread over seeds, change against none, the paper's beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from justright.benchmark.paper_numbers import doubts, paper_rows
from justright.benchmark.suite import Suite, SuiteSetting
from justright.benchmark.suite_line import Line
from justright.benchmark.suite_table import Difference, interval

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
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)  # by target and group

    @property
    def name(self) -> str:
        """What a reader calls it."""
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


Values = dict[tuple[str, int], float]  # by target and seed


def paper_table(suite: Suite, lines: Sequence[Line]) -> PaperTable:
    """What was run of a suite, in its order."""
    targets = tuple(dict.fromkeys(suite.columns.values()))
    stands_for = {target: problem.partition(", ")[0] for problem, target in suite.columns.items()}
    rows = [row for setting in suite.settings if (row := _row(suite, setting, lines, targets)).cells]
    shown = (*targets, EVERY) if len(targets) > 1 and not suite.only_counts else targets
    return PaperTable(
        suite.name, suite.about, suite.profile, shown, suite.groups, stands_for, tuple(rows), suite.only_counts
    )


def values_of(suite: Suite, lines: Sequence[Line], settings: Sequence[str], group: str) -> Values:
    """The runs of some settings, in percent; what a group lacks is left out."""
    scale = 1.0 if suite.only_counts else PERCENT
    chosen = [line for line in lines if line["setting"] in settings and line.get(group) is not None]
    return {(suite.columns[line["problem"]], line["seed"]): scale * line[group] for line in chosen}


def _row(suite: Suite, setting: SuiteSetting, lines: Sequence[Line], targets: Sequence[str]) -> PaperTableRow:
    base = _base(suite, setting)
    cells = {}
    for place, group in enumerate(suite.groups):
        own = values_of(suite, lines, [setting.name], group)
        against = {} if base is setting else values_of(suite, lines, [base.name], group)
        for target in (*targets, EVERY):
            found = {key: value for key, value in own.items() if target in (EVERY, key[0])}
            if found:
                changes = [value - against[key] for key, value in found.items() if key in against]
                printed = [] if setting.is_guide else list(_printed(suite, setting, target, targets, group, place))
                cells[target, group] = _cell(list(found.values()), changes, target == EVERY, found, printed)
    return PaperTableRow(setting.method, setting.row, setting.is_guide, cells)


def _base(suite: Suite, setting: SuiteSetting) -> SuiteSetting:
    """What a setting is compared with: no selection; where that is no row, Bins as it is, or the first row."""
    alike = [each for each in suite.settings if (each.method, each.is_guide) == (setting.method, setting.is_guide)]
    return next((each for row in ("none", "bins") for each in alike if each.row == row), alike[0])


def _cell(
    values: list[float],
    changes: list[float],
    is_mean: bool,
    found: Values,
    printed: list[tuple[float, float | None, list[str]]],
) -> Cell:
    if is_mean:  # the spread is that of the mean over targets, not that between targets
        seeds = sorted({seed for _, seed in found})
        values = [float(np.mean([value for (_, own), value in found.items() if own == seed])) for seed in seeds]
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    paper = float(np.mean([each[0] for each in printed])) if printed else None
    moved = [each[1] for each in printed if each[1] is not None]
    said = tuple(text for each in printed for text in each[2])
    by_paper = float(np.mean(moved)) if moved and len(moved) == len(printed) else None
    return Cell(float(np.mean(values)), spread, len(found), interval(changes), paper, by_paper, said)


def _printed(
    suite: Suite, setting: SuiteSetting, target: str, targets: Sequence[str], group: str, place: int
) -> Iterator[tuple[float, float | None, list[str]]]:
    """What the paper prints for a cell, its change, and doubts; nothing where it does not print all of it."""
    if suite.printed:
        if target in suite.printed:
            yield float(suite.printed[target][place]), None, []
        return
    rows = paper_rows(suite.name)
    wanted = [target] if target != EVERY else list(targets)
    key = setting.method, suite.printed_as.get(setting.row, setting.row)
    found = [
        row for row in rows if (row.method, row.selection) == key and row.target in wanted and group in row.accuracy
    ]
    if len(found) == len(wanted):
        yield from ((row.accuracy[group], row.change.get(group), doubts(row, rows)) for row in found)
