"""Judge each claim of the paper by our runs: it holds, does not hold, or is undecided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from justright.benchmark.paper import paper_rows
from justright.benchmark.results import Line, shown_value
from justright.benchmark.suite import NO_LABELS, Claim, Suite
from justright.benchmark.summary import PERCENT, Difference, difference_text, interval

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "undecided", "not run"

Key = tuple[Any, ...]  # target, seed (not for the paper's figures), method; None if the claim names the method
ClaimValue = tuple[tuple[Any, ...], str, str, float]  # target and seed, method, row, points


@dataclass(frozen=True)
class Verdict:
    """A claim and whether our runs support it."""

    says: str
    verdict: str
    difference: Difference | None = None  # in points, with its 95 % interval over pairs of runs
    n_pairs: int = 0
    paper: float | None = None  # the same difference from the paper's figures
    is_guide: bool = False
    method: str = ""  # only runs of this method; empty for all methods

    def cells(self) -> tuple[str, ...]:
        """Text for a table: claim, verdict, difference, pairs, the paper's difference."""
        paper = "" if self.paper is None else f"{self.paper:+.1f}"
        text = f"the same, {self.method} alone" if self.method else self.says
        text += " (guide)" * self.is_guide
        return text, self.verdict, difference_text(self.difference), str(self.n_pairs or ""), paper


def verdicts(
    suite: Suite, lines: Sequence[Line], others: Callable[[str], tuple[Suite, Sequence[Line]]], is_guide: bool = False
) -> list[Verdict]:
    """One verdict per claim of the suite, followed by one per method if there are several.

    The interval is Student's over pairs of runs with the same method, target and seed. It tells whether a difference on
    these targets exceeds the noise of training, not whether other targets would show it.

    Parameters:
        others: returns another suite by its name, and its lines, for a claim that compares two tables.
        is_guide: judge the runs with the pool as a guide, and only claims about rows that have such runs.
    """
    guides = {setting.row for setting in suite.settings if setting.is_guide}
    claims = [claim for claim in suite.claims if not is_guide or guides.intersection((*claim.better, *claim.than))]
    return [verdict for claim in claims for verdict in _judged(claim, suite, lines, others, is_guide)]


def _judged(claim: Claim, suite: Suite, lines: Sequence[Line], others: Any, is_guide: bool) -> list[Verdict]:
    suite_than, lines_than = others(claim.than_suite) if claim.than_suite else (suite, lines)
    group_than = claim.than_group or claim.group
    # a table without a pool has no guide: both roles are the same there
    is_guide_than = is_guide and any(setting.is_guide for setting in suite_than.settings)
    better = _runs(suite, lines, claim.group, is_guide)
    pairs = _paired(claim, better, _runs(suite_than, lines_than, group_than, is_guide_than))
    printed: Mapping[Key, float] = {}
    if not is_guide:
        than = _figures(claim.than_suite or suite.name, group_than)
        printed = _paired(claim, _figures(suite.name, claim.group), than, suite.printed_as)
    methods = [method for method in dict.fromkeys(key[-1] for key in pairs) if method is not None]
    whole = _verdict(claim, pairs, printed, is_guide)
    alone = [_verdict(claim, pairs, printed, is_guide, method) for method in methods]
    if alone and claim.method and not claim.than_method:  # the claim: better than every other method
        whole = _against_each(alone)
    return [whole, *(alone if len(alone) > 1 else [])]


def _verdict(
    claim: Claim, pairs: Mapping[Key, float], printed: Mapping[Key, float], is_guide: bool, method: str = ""
) -> Verdict:
    ours, theirs = ([value for key, value in values.items() if method in ("", key[-1])] for values in (pairs, printed))
    paper = float(np.mean(theirs)) if theirs else None
    difference = interval(ours)
    judged = NOT_RUN if difference is None else verdict(difference, claim.within, claim.behind)
    return Verdict(claim.says, judged, difference, len(ours), paper, is_guide, method)


def _against_each(alone: Sequence[Verdict]) -> Verdict:
    """The verdict against all other methods, with the numbers of the closest one."""
    if any(one.difference is None for one in alone):
        return replace(alone[0], verdict=NOT_RUN, difference=None, method="")
    outcomes = {one.verdict for one in alone}
    outcome = FAILS if FAILS in outcomes else HOLDS if outcomes == {HOLDS} else UNDECIDED
    return replace(min(alone, key=lambda one: one.difference or ()), method="", verdict=outcome)


def verdict(difference: Difference, within: float | None = None, behind: float = 0.0) -> str:
    """Whether the interval is on one side of 0 (or of -`behind`), or inside the range `within` that counts as equal."""
    _, low, high = difference
    if within is None:
        return HOLDS if low > -behind else FAILS if high < -behind else UNDECIDED
    return HOLDS if -within < low and high < within else FAILS if low > within or high < -within else UNDECIDED


def _runs(suite: Suite, lines: Sequence[Line], group: str, is_guide: bool) -> Iterator[ClaimValue]:
    """Our runs that have a value of the group, with the pool in this role."""
    settings = {setting.name: setting for setting in suite.settings}
    for line in lines:
        own, value = settings[line["setting"]], shown_value(line, group)
        if value is not None and (own.is_guide == is_guide or own.method == NO_LABELS):
            yield (suite.columns[line["problem"]], line["seed"]), own.method, own.row, PERCENT * value


def _figures(table: str, group: str) -> Iterator[ClaimValue]:
    """The figures that the paper prints for the group."""
    for row in paper_rows():
        if row.table == table and group in row.accuracy:
            yield (row.target,), row.method, row.selection, row.accuracy[group]


def _paired(
    claim: Claim, better: Iterable[ClaimValue], than: Iterable[ClaimValue], names: Mapping[str, str] | None = None
) -> dict[Key, float]:
    """The differences by the keys of `than`; a claim about one method compares it with all of these.

    `names` maps rows to the paper's names for them, if they differ.
    """
    own = _means(claim, better, claim.better, claim.method_of_better, names or {})
    differences = {}
    for key, value in _means(claim, than, claim.than, claim.than_method, names or {}).items():
        own_key = (*key[:-1], None) if claim.method_of_better else key
        if own_key in own:
            differences[key] = own[own_key] - value
    return differences


def _means(
    claim: Claim, found: Iterable[ClaimValue], rows: Sequence[str], method: str, names: Mapping[str, str]
) -> dict[Key, float]:
    """The mean over the rows, if each has a value, for the targets and methods of the claim."""
    wanted = [names.get(row, row) for row in rows]
    values: dict[Key, dict[str, float]] = {}
    for place, own, row, points in found:
        is_wanted = row in wanted and (not claim.targets or place[0] in claim.targets)
        if is_wanted and _is_method(own, method, claim, rows):
            values.setdefault((*place, None if method else own), {})[row] = points
    return {key: float(np.mean(list(by_row.values()))) for key, by_row in values.items() if len(by_row) == len(rows)}


def _is_method(own: str, method: str, claim: Claim, rows: Sequence[str]) -> bool:
    """Whether a run of this method counts: k-means only if it is named, and no method against itself."""
    if method:
        return own == method
    is_itself = own == claim.method and rows == claim.better and not claim.than_suite
    return own != NO_LABELS and not is_itself
