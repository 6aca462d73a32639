"""Results of a suite problem by problem: mean and deviation over seeds of every setting, and its categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from justright.benchmark.paper_table import PERCENT
from justright.benchmark.suite import Suite
from justright.benchmark.suite_line import Line
from justright.benchmark.table_csv import Record, csv_text
from justright.benchmark.table_text import TextTable, mean_text
from justright.evaluation.intervals import spread
from justright.evaluation.scores import GROUPS

PROBLEM_COLUMNS = (
    *("suite", "problem", "part", "setting", "runs"),
    *(name for group in GROUPS for name in (group, f"{group} spread")),
    *("categories", "categories in use"),
)


@dataclass(frozen=True)
class ProblemRow:
    """A setting on one problem, in percent; NaN for what there is not."""

    suite: str
    problem: str
    part: str
    setting: str
    n_runs: int
    means: tuple[float, ...]  # in the order of GROUPS
    spreads: tuple[float, ...]  # standard deviation over seeds, NaN from one
    n_categories: float  # mean over seeds, as is the next
    n_used: float  # categories that have images

    def cells(self) -> tuple[str, ...]:
        """Text for a table: setting, runs, accuracies, categories in use."""
        scores = [
            mean_text(*pair) if math.isfinite(pair[0]) else "" for pair in zip(self.means, self.spreads, strict=True)
        ]
        used = f"{_count(self.n_used)} of {_count(self.n_categories)}" if math.isfinite(self.n_used) else ""
        return (self.setting, str(self.n_runs), *scores, used)

    def to_json(self) -> Record:
        """By the names of `PROBLEM_COLUMNS`; None for what there is not."""
        pairs = [value for pair in zip(self.means, self.spreads, strict=True) for value in pair]
        numbers = [None if math.isnan(value) else value for value in (*pairs, self.n_categories, self.n_used)]
        values = (self.suite, self.problem, self.part, self.setting, self.n_runs, *numbers)
        return dict(zip(PROBLEM_COLUMNS, values, strict=True))


def problem_rows(suite: Suite, lines: Sequence[Line]) -> list[ProblemRow]:
    """What was run, by problem and setting in the order of the suite."""
    rows = []
    for problem in suite.problems:
        for setting in suite.settings:
            own = [line for line in lines if (line["problem"], line["setting"]) == (problem.name, setting.name)]
            if own:
                found = [_finite(own, group, PERCENT) for group in GROUPS]
                means = tuple(float(np.mean(each)) if each else math.nan for each in found)
                spreads = tuple(map(spread, found))
                counts = [_finite(own, name) for name in ("n_categories", "n_used")]
                categories, used = (float(np.mean(each)) if each else math.nan for each in counts)
                place = suite.name, problem.name, problem.part, setting.name, len(own)
                rows.append(ProblemRow(*place, means, spreads, categories, used))
    return rows


def problem_tables(rows: Sequence[ProblemRow]) -> list[TextTable]:
    """One table for each problem."""
    columns = ("setting", "runs", "All", "Old", "New", "categories in use")
    parts = {row.problem: f"{row.problem} ({row.part})" if row.part else row.problem for row in rows}
    return [
        TextTable(title, columns, [row.cells() for row in rows if row.problem == problem])
        for problem, title in parts.items()
    ]


def problems_as_csv(rows: Sequence[ProblemRow]) -> str:
    """A row for every problem and setting; what is not there stays empty."""
    return csv_text(PROBLEM_COLUMNS, [row.to_json() for row in rows])


def _finite(lines: Sequence[Line], name: str, scale: float = 1.0) -> list[float]:
    return [scale * line[name] for line in lines if line.get(name) is not None]


def _count(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
