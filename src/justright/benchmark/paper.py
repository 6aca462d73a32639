"""The tables of the paper: the numbers that it prints, and our runs in the same layout."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

import numpy as np

from justright.benchmark.results import Line, shown_value
from justright.benchmark.suite import Suite, SuiteSetting
from justright.benchmark.summary import PERCENT, Difference, interval
from justright.evaluation.intervals import spread
from justright.evaluation.scores import GROUPS

EVERY = "mean over targets"


@dataclass(frozen=True)
class PaperRow:
    """One method with one selection on one target, in percent, as printed. Groups that are not printed are missing."""

    table: str  # tab1 to tab6 and taba1 to taba8, the names of the suites
    method: str  # our name, as for the next two
    selection: str  # may include a parameter, as in "bins, L 3"
    target: str
    accuracy: dict[str, float]  # by group: all, old, new
    change: dict[str, float]  # printed beside it, against no selection
    doubts: Mapping[str, str]  # why a figure cannot be right as printed: it contradicts others or is no number


@cache
def paper_rows() -> tuple[PaperRow, ...]:
    """The rows of all tables."""
    text = files(__package__).joinpath("paper_numbers.csv").read_text(encoding="utf-8")
    rows = []
    for cells in csv.DictReader(text.splitlines()):
        row = PaperRow(
            cells["table"],
            cells["method"],
            cells["selection"],
            cells["target"],
            accuracy={group: float(cells[group]) for group in GROUPS if cells[group]},
            change={group: float(cells[f"change {group}"]) for group in GROUPS if cells[f"change {group}"]},
            doubts={group: cells[f"doubt {group}"] for group in GROUPS if cells[f"doubt {group}"]},
        )
        rows.append(row)
    return tuple(rows)


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
        return f"{self.method}, {self.row} (guide)" if self.is_guide else f"{self.method}, {self.row}"


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
        texts = []
        for row, target, cell in cells:
            name = target if self.is_count else f"{row.name}, {target}"
            if target != EVERY:
                texts += [f"{name}: {text}" for text in cell.doubts]
        return list(dict.fromkeys(texts))

    def label(self, target: str) -> str:
        """A target of the paper, and the data set used here."""
        here = self.stands_for.get(target, "")
        return target if here in ("", target) else f"{target} (here: {here})"


Values = dict[tuple[str, int], float]  # by target and seed


def paper_table(suite: Suite, lines: Sequence[Line]) -> PaperTable:
    """The runs of a suite as a table, in the order of the suite."""
    targets = tuple(dict.fromkeys(suite.columns.values()))
    stands_for = {target: problem.partition(", ")[0] for problem, target in suite.columns.items()}
    shown = (*targets, EVERY) if len(targets) > 1 and not suite.only_counts else targets
    rows = [row for setting in suite.settings if (row := _row(suite, setting, lines, shown)).cells]
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
        for target in targets:
            wanted = [each for each in targets if each != EVERY] if target == EVERY else [target]
            # only seeds that all targets have: means over different targets are not comparable
            seeds = {seed for _, seed in own if all((name, seed) in own for name in wanted)}
            values = {key: value for key, value in own.items() if key[0] in wanted and key[1] in seeds}
            if values:
                changes = [value - against[key] for key, value in values.items() if key in against]
                cells[target, group] = _cell(values, changes, _printed(suite, setting, wanted, group), group)
    n_wanted = sum(own is setting for problem in suite.problems for own, _ in suite.runs_of(problem))
    n_runs = sum(line["setting"] == setting.name for line in lines)
    against_row = "" if base is setting else base.row
    return PaperTableRow(setting.method, setting.row, setting.is_guide, against_row, n_runs, n_wanted, cells)


def _base(suite: Suite, setting: SuiteSetting) -> SuiteSetting:
    """The setting to compare with: no selection; if there is no such row, plain Bins, or the first row."""
    alike = [other for other in suite.settings if (other.method, other.is_guide) == (setting.method, setting.is_guide)]
    return next((other for row in ("none", "bins") for other in alike if other.row == row), alike[0])


def _cell(values: Values, changes: list[float], printed: Sequence[PaperRow], group: str) -> Cell:
    """Average over targets for each seed first: the spread is that over seeds, not over targets."""
    by_seed: dict[int, list[float]] = {}
    for (_, seed), value in sorted(values.items(), key=lambda item: item[0][1]):
        by_seed.setdefault(seed, []).append(value)
    means = [float(np.mean(of_seed)) for of_seed in by_seed.values()]
    cell = Cell(float(np.mean(means)), spread(means), len(values), interval(changes))
    if not printed:
        return cell
    paper_changes = [row.change[group] for row in printed if group in row.change]
    return replace(
        cell,
        paper=float(np.mean([row.accuracy[group] for row in printed])),
        paper_change=float(np.mean(paper_changes)) if len(paper_changes) == len(printed) else None,
        doubts=tuple(text for row in printed if group in row.doubts for text in row.doubts[group].split("; ")),
    )


def _printed(suite: Suite, setting: SuiteSetting, targets: Sequence[str], group: str) -> list[PaperRow]:
    """The paper's rows for a cell; none unless it prints the figures of all targets."""
    selection = suite.printed_as.get(setting.row, setting.row)
    if suite.printed:
        rows = [
            PaperRow(
                suite.name,
                setting.method,
                selection,
                target,
                accuracy=dict(zip(suite.groups, map(float, numbers), strict=True)),
                change={},
                doubts=suite.doubted.get(target, {}),
            )
            for target, numbers in suite.printed.items()
        ]
    else:
        key = suite.name, setting.method, selection
        rows = [row for row in paper_rows() if (row.table, row.method, row.selection) == key]
    printed = [row for row in rows if row.target in targets and group in row.accuracy]
    return printed if len(printed) == len(targets) and not setting.is_guide else []
