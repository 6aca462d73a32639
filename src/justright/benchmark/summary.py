"""Compare the settings of a suite: means over problems, paired differences to the baseline, and each problem alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from justright.benchmark.results import Line
from justright.benchmark.suite import Suite
from justright.evaluation.intervals import mean_difference, spread
from justright.evaluation.scores import GROUPS

PERCENT = 100.0
PROBLEM_COLUMNS = (
    "suite", "problem", "part", "setting", "runs", "all", "all spread", "old", "old spread", "new", "new spread",
    "categories", "categories in use",
)  # fmt: skip

Difference = tuple[float, float, float]  # mean, low and high, paired by problem
Record = dict[str, Any]  # by the name of the column; None for a missing value


@dataclass(frozen=True)
class SettingRow:
    """A setting over its problems."""

    setting: str
    n_problems: int
    n_runs: int
    all: float | None  # mean accuracy over problems; None if no run has such images
    old: float | None
    new: float | None
    all_difference: Difference | None  # gain over the baseline; None for itself and for fewer than two problems
    new_difference: Difference | None
    n_better: int  # number of problems with a higher accuracy on all images than the baseline


def suite_table(suite: Suite, lines: Sequence[Line]) -> list[SettingRow]:
    """One row per setting, in the order of the suite. Seeds are averaged within a problem first.

    A setting is compared with the baseline on the problems and seeds that both have.
    """
    rows = []
    for setting in (setting.name for setting in suite.settings):
        by_problem: dict[str, list[Line]] = {}
        for line in lines:
            if line["setting"] == setting:
                by_problem.setdefault(line["problem"], []).append(line)
        if not by_problem:
            continue
        means = []
        for group in GROUPS:
            of_problems = [_mean(_values(runs, group)) for runs in by_problem.values()]
            means.append(_mean([mean for mean in of_problems if mean is not None]))
        gains = [paired(lines, setting, suite.baseline, group) for group in ("all", "new")]
        of_all, of_new = (None if setting == suite.baseline else interval(each) for each in gains)
        n_better, n_runs = sum(gain > 0 for gain in gains[0]), sum(map(len, by_problem.values()))
        all_, old, new = means
        rows.append(SettingRow(setting, len(by_problem), n_runs, all_, old, new, of_all, of_new, n_better))
    return rows


def paired(lines: Sequence[Line], setting: str, baseline: str, group: str) -> list[float]:
    """Setting minus baseline, one value per problem: the mean over the seeds that both have."""
    value = {(x["problem"], x["setting"], x["seed"]): x[group] for x in lines if x[group] is not None}
    differences: dict[str, list[float]] = {}
    for problem, name, seed in value:
        if name == setting and (problem, baseline, seed) in value:
            difference = value[problem, setting, seed] - value[problem, baseline, seed]
            differences.setdefault(problem, []).append(difference)
    return [float(np.mean(of_problem)) for of_problem in differences.values()]


def interval(differences: Sequence[float]) -> Difference | None:
    """Mean, low and high by Student's t over problems; None for fewer than two."""
    return astuple(mean_difference(np.array(differences))) if len(differences) > 1 else None


def difference_text(difference: Difference | None, scale: float = 1.0) -> str:
    """Mean, low and high with one decimal; empty if there is no difference."""
    return "" if difference is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(scale * value for value in difference))


def problem_rows(suite: Suite, lines: Sequence[Line]) -> list[Record]:
    """One record per problem and setting that was run, in the order of the suite, by the names of `PROBLEM_COLUMNS`.

    Accuracies in percent and their standard deviation over seeds, other numbers as means over seeds.
    """
    rows = []
    for problem in suite.problems:
        for setting in suite.settings:
            runs = [line for line in lines if (line["problem"], line["setting"]) == (problem.name, setting.name)]
            if runs:
                values: list[Any] = [suite.name, problem.name, problem.part, setting.name, len(runs)]
                for group in GROUPS:
                    scores = [PERCENT * score for score in _values(runs, group)]
                    values += [_mean(scores), spread(scores) if len(scores) > 1 else None]
                values += [_mean(_values(runs, name)) for name in ("n_categories", "n_used")]
                rows.append(dict(zip(PROBLEM_COLUMNS, values, strict=True)))
    return rows


def _values(lines: Sequence[Line], name: str) -> list[float]:
    return [float(line[name]) for line in lines if line.get(name) is not None]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
