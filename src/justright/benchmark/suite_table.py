"""Results of a suite as one row a setting: means over problems, and paired differences to the baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from justright.benchmark.suite import Suite
from justright.benchmark.suite_line import Line
from justright.evaluation.intervals import mean_difference
from justright.evaluation.scores import GROUPS

COLUMNS = ("setting", "problems", "runs", "All", "Old", "New", "All against baseline", "New against baseline", "better")

Difference = tuple[float, float, float]  # mean, low and high, paired by problem


@dataclass(frozen=True)
class SettingRow:
    """A setting over its problems."""

    setting: str
    n_problems: int
    n_runs: int
    all: float  # mean accuracy over problems
    old: float
    new: float
    all_difference: Difference | None  # gain over the baseline; None for itself and for fewer than two problems
    new_difference: Difference | None
    n_better: int  # in how many problems it is better than the baseline on all images

    def cells(self) -> tuple[object, ...]:
        """The row as text and numbers, in the order of COLUMNS."""
        means = [f"{100 * value:.1f}" for value in (self.all, self.old, self.new)]
        differences = [difference_text(each, scale=100.0) for each in (self.all_difference, self.new_difference)]
        better = "" if self.all_difference is None else f"{self.n_better} of {self.n_problems}"
        return (self.setting, self.n_problems, self.n_runs, *means, *differences, better)

    def to_json(self) -> dict[str, Any]:
        """All fields; None for an accuracy that there is not."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


def suite_table(suite: Suite, lines: Sequence[Line]) -> list[SettingRow]:
    """One row a setting, in the order of the suite. Seeds are averaged within a problem first.

    A setting is compared with the baseline on the problems and seeds that both have.
    """
    rows = []
    for setting in (each.name for each in suite.settings):
        by_problem: dict[str, list[Line]] = {}
        for line in lines:
            if line["setting"] == setting:
                by_problem.setdefault(line["problem"], []).append(line)
        if not by_problem:
            continue
        everything, old, new = (
            _mean([_mean([_accuracy(x, group) for x in each]) for each in by_problem.values()]) for group in GROUPS
        )
        changes = {group: paired(lines, setting, suite.baseline, group) for group in ("all", "new")}
        n_better = sum(value > 0 for value in changes["all"])
        of_all, of_new = (None if setting == suite.baseline else interval(each) for each in changes.values())
        counts = len(by_problem), sum(map(len, by_problem.values()))
        rows.append(SettingRow(setting, *counts, everything, old, new, of_all, of_new, n_better))
    return rows


def paired(lines: Sequence[Line], setting: str, baseline: str, group: str) -> list[float]:
    """Setting less baseline, a value a problem: the mean over the seeds that both have."""
    value = {(x["problem"], x["setting"], x["seed"]): _accuracy(x, group) for x in lines}
    found: dict[str, list[float]] = {}
    for problem, name, seed in value:
        if name == setting and (problem, baseline, seed) in value:
            difference = value[problem, setting, seed] - value[problem, baseline, seed]
            found.setdefault(problem, []).append(difference)
    return [_mean(each) for each in found.values()]


def interval(differences: Sequence[float]) -> Difference | None:
    """Mean, low and high by Student's t over problems; None from fewer than two."""
    if len(differences) < 2:
        return None
    return astuple(mean_difference(np.array(differences)))


def _accuracy(line: Line, group: str) -> float:
    return math.nan if line[group] is None else float(line[group])


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else math.nan


def difference_text(difference: Difference | None, scale: float = 1.0) -> str:
    """Mean, low and high with one decimal; empty where there is no difference."""
    return "" if difference is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(scale * each for each in difference))
