"""What our runs say of each claim of the paper: it holds, it does not hold, or they cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from justright.benchmark.claim import NO_LABELS, Claim
from justright.benchmark.paper_numbers import paper_rows
from justright.benchmark.paper_table import PERCENT
from justright.benchmark.suite import Suite
from justright.benchmark.suite_line import Line, shown_value
from justright.benchmark.suite_table import Difference, difference_text, interval

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "undecided", "not run"

Key = tuple[Any, ...]  # target, seed (not in the paper's figures), method; None for a method that the claim names
ClaimValue = tuple[tuple[Any, ...], str, str, float]  # target and seed, method, row, points


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

    def cells(self) -> tuple[str, ...]:
        """Text for a table: claim, verdict, difference, pairs, the paper's difference."""
        paper = "" if self.paper is None else f"{self.paper:+.1f}"
        says = f"the same, {self.method} alone" if self.method else self.says
        said = f"{says}{' (guide)' * self.is_guide}"
        return said, self.verdict, difference_text(self.difference), str(self.n_pairs or ""), paper


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
    group_than = claim.than_group or claim.group
    # a table without a pool has no guide: there both roles are the same
    is_guide_than = is_guide and any(each.is_guide for each in suite_than.settings)
    better = _runs(suite, lines, claim.group, is_guide)
    pairs = _paired(claim, better, _runs(suite_than, lines_than, group_than, is_guide_than))
    printed: Mapping[Key, float] = {}
    if not is_guide:
        than = _figures(claim.than_suite or suite.name, group_than)
        printed = _paired(claim, _figures(suite.name, claim.group), than, suite.printed_as)
    methods = [method for method in dict.fromkeys(key[-1] for key in pairs) if method is not None]
    whole = _verdict(claim, pairs, printed, is_guide)
    alone = [_verdict(claim, pairs, printed, is_guide, method) for method in methods]
    if alone and claim.method and not claim.than_method:  # it is said to be better than every other one
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


def _runs(suite: Suite, lines: Sequence[Line], group: str, is_guide: bool) -> Iterator[ClaimValue]:
    """Our runs that have the group, with the pool in this role."""
    settings = {each.name: each for each in suite.settings}
    for line in lines:
        own, value = settings[line["setting"]], shown_value(line, group)
        if value is not None and (own.is_guide == is_guide or own.method == NO_LABELS):
            yield (suite.columns[line["problem"]], line["seed"]), own.method, own.row, PERCENT * value


def _figures(table: str, group: str) -> Iterator[ClaimValue]:
    """What the paper prints of the group."""
    for row in paper_rows():
        if row.table == table and group in row.accuracy:
            yield (row.target,), row.method, row.selection, row.accuracy[group]


def _paired(
    claim: Claim, better: Iterable[ClaimValue], than: Iterable[ClaimValue], names: Mapping[str, str] | None = None
) -> dict[Key, float]:
    """The differences by the keys of `than`; a claim about one method compares it with every one of those.

    `names` says what rows are called, where that is something else.
    """
    own = _means(claim, better, claim.better, claim.method_of_better, names or {})
    return {
        key: own[alike] - value
        for key, value in _means(claim, than, claim.than, claim.than_method, names or {}).items()
        if (alike := (*key[:-1], None) if claim.method_of_better else key) in own
    }


def _means(
    claim: Claim, found: Iterable[ClaimValue], rows: Sequence[str], method: str, names: Mapping[str, str]
) -> dict[Key, float]:
    """The mean over the rows, where there is a value of each, for the targets and methods that the claim is about."""
    asked = [names.get(row, row) for row in rows]
    values: dict[Key, dict[str, float]] = {}
    for place, own, row, points in found:
        is_asked = row in asked and (not claim.targets or place[0] in claim.targets)
        if is_asked and _is_method(own, method, claim, rows):
            values.setdefault((*place, None if method else own), {})[row] = points
    return {key: float(np.mean(list(each.values()))) for key, each in values.items() if len(each) == len(rows)}


def _is_method(own: str, method: str, claim: Claim, rows: Sequence[str]) -> bool:
    """Whether a run of this method counts: none of k-means unless it is named, and nothing is compared with itself."""
    if method:
        return own == method
    is_itself = own == claim.method and rows == claim.better and not claim.than_suite
    return own != NO_LABELS and not is_itself
