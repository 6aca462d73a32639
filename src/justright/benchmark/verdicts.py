"""What our runs say of each claim of the paper: it holds, it does not hold, or they cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from justright.benchmark.paper_numbers import paper_rows
from justright.benchmark.paper_table import PERCENT
from justright.benchmark.suite import Claim, Suite, SuiteSetting
from justright.benchmark.suite_line import Line, shown_value
from justright.benchmark.suite_table import Difference, interval

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "undecided", "not run"
NO_LABELS = "kmeans"  # sees no label, so no claim about labels is judged by it, unless it is named

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Verdict:
    """A claim and what became of it."""

    says: str
    verdict: str
    difference: Difference | None = None  # in points, with its 95 % interval over pairs of runs
    n_pairs: int = 0
    paper: float | None = None  # the same difference from the paper's figures
    is_guide: bool = False

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)

    def cells(self) -> tuple[str, ...]:
        """Text for a table: claim, verdict, difference, pairs, the paper's difference."""
        found = "" if self.difference is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*self.difference)
        paper = "" if self.paper is None else f"{self.paper:+.1f}"
        return f"{self.says}{' (guide)' * self.is_guide}", self.verdict, found, str(self.n_pairs or ""), paper


def verdicts(
    suite: Suite, lines: Sequence[Line], others: Callable[[str], tuple[Suite, Sequence[Line]]], is_guide: bool = False
) -> list[Verdict]:
    """One for each claim of the suite.

    The interval is Student's over pairs of runs with the same method, target and seed: it says whether a difference on
    these targets is more than the noise of training, not whether other targets would show it.

    Parameters:
        others: gives another suite by its name, and its lines, for a claim that compares two tables.
        is_guide: judge the runs in which the pool only guides, and only claims about rows that have such runs.
    """
    guides = {each.row for each in suite.settings if each.is_guide}
    claims = [claim for claim in suite.claims if not is_guide or guides.intersection((*claim.better, *claim.than))]
    return [_judged(claim, suite, lines, others, is_guide) for claim in claims]


def _judged(claim: Claim, suite: Suite, lines: Sequence[Line], others: Any, is_guide: bool) -> Verdict:
    suite_than, lines_than = others(claim.than_suite) if claim.than_suite else (suite, lines)
    better = _values(suite, lines, claim, claim.better, claim.group, "", is_guide)
    group = claim.than_group or claim.group
    # a table without a pool has no guide: there both roles are the same
    has_role = any(each.is_guide for each in suite_than.settings)
    than = _values(suite_than, lines_than, claim, claim.than, group, claim.than_method, is_guide and has_role)
    differences = [better[key] - than[key] for key in better if key in than]
    paper = None if is_guide else _by_paper(claim, suite.name, claim.than_suite or suite.name, suite)
    found = Verdict(claim.says, NOT_RUN, interval(differences), len(differences), paper, is_guide)
    return found if found.difference is None else replace(found, verdict=verdict(found.difference, claim.within))


def verdict(difference: Difference, within: float | None = None) -> str:
    """By the interval: on one side of 0, or of the difference that still counts as equal."""
    _, low, high = difference
    if within is None:
        return HOLDS if low > 0 else FAILS if high < 0 else UNDECIDED
    return HOLDS if -within < low and high < within else FAILS if low > within or high < -within else UNDECIDED


def _values(
    suite: Suite,
    lines: Sequence[Line],
    claim: Claim,
    rows: Sequence[str],
    group: str,
    method: str,
    is_guide: bool,
) -> dict[Key, float]:
    """The mean over the rows, in points, where a run of each is there."""
    settings = {each.name: each for each in suite.settings}
    found: dict[Key, dict[str, float]] = {}
    for line in lines:
        own, target = settings[line["setting"]], suite.columns[line["problem"]]
        is_asked = own.row in rows and (not claim.targets or target in claim.targets)
        value = shown_value(line, group)
        if is_asked and value is not None and _counts(own, claim, method, is_guide):
            key = (target, line["seed"], None if claim.than_method else own.method)
            found.setdefault(key, {})[own.row] = PERCENT * value
    return {key: float(np.mean(list(each.values()))) for key, each in found.items() if len(each) == len(rows)}


def _counts(setting: SuiteSetting, claim: Claim, method: str, is_guide: bool) -> bool:
    if claim.than_method and setting.method == NO_LABELS:
        return not method
    is_method = setting.method == method if claim.than_method else setting.method != NO_LABELS
    return is_method and setting.is_guide == is_guide


def _by_paper(claim: Claim, table: str, table_than: str, suite: Suite) -> float | None:
    """The difference that the paper's figures give, as the mean over methods and targets that it prints both for."""

    def printed(table: str, rows: Sequence[str], group: str, method: str) -> dict[Key, float]:
        names = {suite.printed_as.get(row, row): row for row in rows}
        found: dict[Key, dict[str, float]] = {}
        for row in paper_rows(table):
            is_method = row.method == (method or NO_LABELS) if claim.than_method else row.method != NO_LABELS
            if row.selection in names and is_method and (not claim.targets or row.target in claim.targets):
                key = (row.target, None if claim.than_method else row.method)
                if group in row.accuracy:
                    found.setdefault(key, {})[row.selection] = row.accuracy[group]
        return {key: float(np.mean(list(each.values()))) for key, each in found.items() if len(each) == len(rows)}

    better = printed(table, claim.better, claim.group, "")
    than = printed(table_than, claim.than, claim.than_group or claim.group, claim.than_method)
    differences = [better[key] - than[key] for key in better if key in than]
    return float(np.mean(differences)) if differences else None
