"""Results of a suite problem by problem: mean and deviation over seeds of every setting, and its categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


def problem_rows(suite: Suite, lines: Sequence[Line]) -> list[Record]:
    """What was run, by problem and setting in the order of the suite, under the names of `PROBLEM_COLUMNS`.

    Accuracies in percent and their standard deviation over seeds, other numbers as means over seeds; None without any.
    """
    rows = []
    for problem in suite.problems:
        for setting in suite.settings:
            own = [line for line in lines if (line["problem"], line["setting"]) == (problem.name, setting.name)]
            if own:
                values: list[Any] = [suite.name, problem.name, problem.part, setting.name, len(own)]
                for group in GROUPS:
                    scores = [PERCENT * score for score in _values(own, group)]
                    values += [_mean(scores), spread(scores) if len(scores) > 1 else None]
                values += [_mean(_values(own, name)) for name in ("n_categories", "n_used")]
                rows.append(dict(zip(PROBLEM_COLUMNS, values, strict=True)))
    return rows


def problem_tables(rows: Sequence[Record]) -> list[TextTable]:
    """One table for each problem: setting, runs, accuracies, categories in use."""
    columns = ("setting", "runs", "All", "Old", "New", "categories in use")
    titles = {row["problem"]: f"{row['problem']} ({row['part']})" if row["part"] else row["problem"] for row in rows}
    return [
        TextTable(title, columns, [_cells(row) for row in rows if row["problem"] == problem])
        for problem, title in titles.items()
    ]


def problems_as_csv(rows: Sequence[Record]) -> str:
    """A row for every problem and setting; what is not there stays empty."""
    return csv_text(PROBLEM_COLUMNS, rows)


def _cells(row: Record) -> tuple[str, ...]:
    scores = ["" if row[group] is None else mean_text(row[group], row[f"{group} spread"]) for group in GROUPS]
    counts = [row[name] for name in ("categories in use", "categories")]
    used = "" if counts[0] is None else " of ".join(f"{each:.1f}".removesuffix(".0") for each in counts)
    return (row["setting"], str(row["runs"]), *scores, used)


def _values(lines: Sequence[Line], name: str) -> list[float]:
    return [float(line[name]) for line in lines if line.get(name) is not None]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
