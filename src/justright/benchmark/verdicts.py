"""What our runs say of each claim of the paper: it holds, it does not hold, or they cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from justright.benchmark.claim import NO_LABELS, Claim
from justright.benchmark.paper_numbers import paper_rows
from justright.benchmark.paper_table import PERCENT
from justright.benchmark.suite import Suite
from justright.benchmark.suite_line import Line, shown_value
from justright.benchmark.suite_table import Difference, interval

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "undecided", "not run"

Key = tuple[Any, ...]  # target, seed (not in the paper's figures), method; None for a method that the claim names


@dataclass(frozen=True)
class Verdict:
    """A claim and what became of it."""

    says: str
    verdict: str
    difference: Difference | None = None  # in points, with its 95 % interval over pairs of runs
    n_pairs: int = 0
    paper: float | None = None  # the same difference from the paper's figures
    is_guide: bool = False
    method: str = ""  # the only one that was looked at; all together if empty

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)

    def cells(self) -> tuple[str, ...]:
        """Text for a table: claim, verdict, difference, pairs, the paper's difference."""
        found = "" if self.difference is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*self.difference)
        paper = "" if self.paper is None else f"{self.paper:+.1f}"
        says = f"the same, {self.method} alone" if self.method else self.says
        return f"{says}{' (guide)' * self.is_guide}", self.verdict, found, str(self.n_pairs or ""), paper


def verdicts(
    suite: Suite, lines: Sequence[Line], others: Callable[[str], tuple[Suite, Sequence[Line]]], is_guide: bool = False
) -> list[Verdict]:
    """One for each claim of the suite, followed by one for each method where it was judged by several.

    The interval is Student's over pairs of runs with the same method, target and seed: it says whether a difference on
    these targets is more than the noise of training, not whether other targets would show it.

    Parameters:
        others: gives another suite by its name, and its lines, for a claim that compares two tables.
        is_guide: judge the runs in which the pool only guides, and only claims about rows that have such runs.
    """
    guides = {each.row for each in suite.settings if each.is_guide}
    claims = [claim for claim in suite.claims if not is_guide or guides.intersection((*claim.better, *claim.than))]
    return [found for claim in claims for found in _judged(claim, suite, lines, others, is_guide)]


def _judged(claim: Claim, suite: Suite, lines: Sequence[Line], others: Any, is_guide: bool) -> list[Verdict]:
    suite_than, lines_than = others(claim.than_suite) if claim.than_suite else (suite, lines)
    better = _values(suite, lines, claim, claim.better, claim.group, claim.method_of_better, is_guide)
    group = claim.than_group or claim.group
    # a table without a pool has no guide: there both roles are the same
    has_role = any(each.is_guide for each in suite_than.settings)
    than = _values(suite_than, lines_than, claim, claim.than, group, claim.than_method, is_guide and has_role)
    pairs = _paired(better, than, claim)
    printed = {} if is_guide else _by_paper(claim, suite.name, claim.than_suite or suite.name, suite)
    methods = [method for method in dict.fromkeys(key[-1] for key in pairs) if method is not None]
    whole = _verdict(claim, pairs, printed, is_guide)
    alone = [_verdict(claim, pairs, printed, is_guide, method) for method in methods]
    if claim.is_against_each and alone:
        whole = _against_each(alone)
    return [whole, *(alone if len(alone) > 1 else [])]


def _verdict(
    claim: Claim, pairs: Mapping[Key, float], printed: Mapping[Key, float], is_guide: bool, method: str = ""
) -> Verdict:
    ours, theirs = ([value for key, value in values.items() if method in ("", key[-1])] for values in (pairs, printed))
    paper = float(np.mean(theirs)) if theirs else None
    found = Verdict(claim.says, NOT_RUN, interval(ours), len(ours), paper, is_guide, method)
    if found.difference is None:
        return found
    return replace(found, verdict=verdict(found.difference, claim.within, claim.behind))


def _against_each(alone: Sequence[Verdict]) -> Verdict:
    """The verdict against all other methods, with the numbers of the one that comes closest."""
    if any(each.difference is None for each in alone):
        return replace(alone[0], verdict=NOT_RUN, difference=None, method="")
    said = {each.verdict for each in alone}
    closest = min(alone, key=lambda each: each.difference or ())
    return replace(closest, method="", verdict=FAILS if FAILS in said else HOLDS if said == {HOLDS} else UNDECIDED)


def verdict(difference: Difference, within: float | None = None, behind: float = 0.0) -> str:
    """Whether the interval lies on one side of 0 (or of `behind`), or inside the difference that counts as equal."""
    _, low, high = difference
    if within is None:
        return HOLDS if low > -behind else FAILS if high < -behind else UNDECIDED
    return HOLDS if -within < low and high < within else FAILS if low > within or high < -within else UNDECIDED


def _paired(better: Mapping[Key, float], than: Mapping[Key, float], claim: Claim) -> dict[Key, float]:
    """The differences by the keys of `than`; a claim about one method compares it with every one of those."""
    return {
        key: better[own] - value
        for key, value in than.items()
        if (own := (*key[:-1], None) if claim.method_of_better else key) in better
    }


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
        is_role = own.is_guide == is_guide or own.method == NO_LABELS
        is_asked = own.row in rows and (not claim.targets or target in claim.targets)
        value = shown_value(line, group)
        if is_asked and value is not None and is_role and _is_method(own.method, method, claim, rows):
            key = (target, line["seed"], None if method else own.method)
            found.setdefault(key, {})[own.row] = PERCENT * value
    return {key: float(np.mean(list(each.values()))) for key, each in found.items() if len(each) == len(rows)}


def _is_method(own: str, method: str, claim: Claim, rows: Sequence[str]) -> bool:
    """Whether a run of this method counts: none of k-means unless it is named, and nothing is compared with itself."""
    if method:
        return own == method
    is_itself = own == claim.method and rows == claim.better and not claim.than_suite
    return own != NO_LABELS and not is_itself


def _by_paper(claim: Claim, table: str, table_than: str, suite: Suite) -> dict[Key, float]:
    """The differences that the paper's figures give, for methods and targets that it prints both for."""

    def printed(table: str, rows: Sequence[str], group: str, method: str) -> dict[Key, float]:
        names = {suite.printed_as.get(row, row): row for row in rows}
        found: dict[Key, dict[str, float]] = {}
        for row in paper_rows(table):
            is_asked = row.selection in names and (not claim.targets or row.target in claim.targets)
            if is_asked and group in row.accuracy and _is_method(row.method, method, claim, rows):
                key = (row.target, None if method else row.method)
                found.setdefault(key, {})[row.selection] = row.accuracy[group]
        return {key: float(np.mean(list(each.values()))) for key, each in found.items() if len(each) == len(rows)}

    better = printed(table, claim.better, claim.group, claim.method_of_better)
    than = printed(table_than, claim.than, claim.than_group or claim.group, claim.than_method)
    return _paired(better, than, claim)
