"""Judge each claim by our runs, with the problem as the unit and a correction for the number of claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from justright.benchmark.paper import paper_rows
from justright.benchmark.results import Line, shown_value
from justright.benchmark.suite import NO_LABELS, Claim, Suite
from justright.benchmark.summary import PERCENT, Difference, difference_text
from justright.evaluation.comparisons import ProblemDifferences, holm

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "undecided", "not run"
MARGIN = 2.0  # points: the smallest difference of interest
NO_EFFECT = f"no effect larger than {MARGIN:g} points"
OUTCOMES = HOLDS, FAILS, NO_EFFECT  # the first one whose corrected p-value is small enough
ERROR_RATE = 0.05
LEAST_USED = 0.8  # a method whose median run uses a smaller share of the categories has not converged

Key = tuple[str, int | None, str]  # target, seed, method
Values = dict[tuple[str, int | None, str, str], float]  # points by target, seed, method and row


@dataclass(frozen=True)
class Verdict:
    """A claim and whether our runs support it."""

    claim: str
    verdict: str
    difference: Difference | None = None  # in points, with its 95 % interval over problems
    n_problems: int = 0
    n_pairs: int = 0  # runs with the same problem, seed and method
    paper: float | None = None  # the same difference from the paper's figures
    is_guide: bool = False
    method: str = ""  # only runs of this method; empty for all methods
    left_out: tuple[str, ...] = ()  # methods that do not count because they have not converged
    p_values: Mapping[str, float] = field(default_factory=dict)  # by outcome, not corrected

    @property
    def is_paper_excluded(self) -> bool | None:
        """Whether the difference that the paper prints lies outside the interval; None without one of them."""
        if self.paper is None or self.difference is None:
            return None
        return not self.difference[1] <= self.paper <= self.difference[2]

    def cells(self) -> tuple[str, ...]:
        """Text for a table: claim, verdict, difference, problems, the paper's difference."""
        text = f"the same, {self.method} alone" if self.method else self.claim
        if self.is_guide:
            text += " (guide)"
        if self.left_out:
            text += f" (without {', '.join(self.left_out)}: not converged)"
        paper = "" if self.paper is None else f"{self.paper:+.1f}"
        if self.is_paper_excluded:
            paper += ", excluded"
        return text, self.verdict, difference_text(self.difference), str(self.n_problems or ""), paper


OpenSuite = Callable[[str], tuple[Suite, Sequence[Line]]]  # returns the suite of a name, and its lines


def verdicts(suite: Suite, lines: Sequence[Line], open_suite: OpenSuite, is_guide: bool = False) -> list[Verdict]:
    """One verdict per claim of the suite, followed by one per method if there are several; see `compared`."""
    return corrected(compared(suite, lines, open_suite, is_guide))


def compared(suite: Suite, lines: Sequence[Line], open_suite: OpenSuite, is_guide: bool = False) -> list[Verdict]:
    """Differences and p-values for each claim, not corrected and without an outcome.

    The unit is the problem: runs that differ in seed or method are averaged within it first. A method that has not
    converged does not count together with others.

    Parameters:
        open_suite: opens the other table of a claim that compares two.
        is_guide: judge the runs with the pool as a guide, and only claims about rows that have such runs.
    """
    guides = {setting.row for setting in suite.settings if setting.is_guide}
    role = "guide" if is_guide else "rival"
    claims = [claim for claim in suite.claims if claim.role in ("", role)]
    claims = [claim for claim in claims if not is_guide or guides.intersection((*claim.better, *claim.than))]
    return [verdict for claim in claims for verdict in _verdicts_of(claim, suite, lines, open_suite, is_guide)]


def corrected(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The outcome of each, by p-values that are corrected for their number by Holm's method.

    Claims about all methods together are one family, and those about each single method another.
    """
    outcomes: dict[int, str] = {}
    for method in dict.fromkeys(each.method for each in verdicts):
        family = [place for place, each in enumerate(verdicts) if each.method == method and each.p_values]
        p_values = {name: holm([verdicts[place].p_values[name] for place in family]) for name in OUTCOMES}
        for number, place in enumerate(family):
            shown = [name for name in OUTCOMES if p_values[name][number] <= ERROR_RATE]
            outcomes[place] = shown[0] if shown else UNDECIDED
    return [replace(each, verdict=outcomes.get(place, each.verdict)) for place, each in enumerate(verdicts)]


def _verdicts_of(
    claim: Claim, suite: Suite, lines: Sequence[Line], open_suite: OpenSuite, is_guide: bool
) -> list[Verdict]:
    """The verdict on a claim for all methods together, then for each if there are several."""
    suite_than, lines_than = open_suite(claim.than_suite) if claim.than_suite else (suite, lines)
    group_than = claim.than_group or claim.group
    # without a pool both roles are the same
    is_guide_than = is_guide and any(setting.is_guide for setting in suite_than.settings)
    runs_than = _runs(suite_than, lines_than, group_than, is_guide_than)
    pairs = _paired(claim, _runs(suite, lines, claim.group, is_guide), runs_than, {})
    printed: Mapping[Key, float] = {}
    if not is_guide:
        figures_than = _figures(claim.than_suite or suite.name, group_than)
        printed = _paired(claim, _figures(suite.name, claim.group), figures_than, suite.printed_as)
    methods = [method for method in dict.fromkeys(key[-1] for key in pairs) if method]
    left_out = tuple(method for method in methods if not is_converged(suite, lines, method)) if len(methods) > 1 else ()
    counted = {key: value for key, value in pairs.items() if key[-1] not in left_out}
    together = replace(_verdict(claim, counted, printed, is_guide), left_out=left_out)
    alone = [_verdict(claim, pairs, printed, is_guide, method) for method in methods]
    if alone and claim.method and not claim.than_method:  # the claim: better than every other method
        closest = min(alone, key=lambda one: one.difference or (-np.inf,))  # without runs of one the claim is open
        together = replace(closest, method="", left_out=())
    return [together, *(alone if len(alone) > 1 else [])]


def is_converged(suite: Suite, lines: Sequence[Line], method: str) -> bool:
    """Whether the median run of a method uses at least 80 % of the target's categories."""
    names = {setting.name for setting in suite.settings if setting.method == method}
    shares = [line["n_used"] / line["n_target"] for line in lines if line["setting"] in names and "n_used" in line]
    return not shares or float(np.median(shares)) >= LEAST_USED


def _verdict(
    claim: Claim, pairs: Mapping[Key, float], printed: Mapping[Key, float], is_guide: bool, method: str = ""
) -> Verdict:
    """The verdict on a claim for one method, or for all of them if `method` is empty."""
    if method:
        pairs = {key: value for key, value in pairs.items() if key[-1] == method}
        printed = {key: value for key, value in printed.items() if key[-1] == method}
    paper = float(np.mean(list(printed.values()))) if printed else None
    of_problem: dict[str, list[float]] = {}
    for (target, _, _), value in pairs.items():
        of_problem.setdefault(target, []).append(value)
    verdict = Verdict(claim.text, NOT_RUN, None, len(of_problem), len(pairs), paper, is_guide, method)
    if len(of_problem) < 2:
        return verdict
    differences = ProblemDifferences(np.array([np.mean(values) for values in of_problem.values()]))
    return replace(
        verdict,
        verdict=UNDECIDED,
        difference=(differences.mean, *differences.interval()),
        p_values=outcome_p_values(differences, claim.within, claim.behind),
    )


def outcome_p_values(
    differences: ProblemDifferences, within: float | None = None, behind: float = 0.0
) -> dict[str, float]:
    """The p-value of each outcome: the probability of differences like these if the outcome is false.

    A claim holds if the mean is above 0 (or above -`behind`), or less than `within` away from 0 if `within` is set.
    The tests for above and below are two-sided, so that both together are wrong in 5 % of the cases.
    """
    if within is not None:
        outside = min(differences.p_above(within), differences.p_below(-within))
        return {HOLDS: differences.p_equivalence(within), FAILS: min(1.0, 2 * outside), NO_EFFECT: 1.0}
    sides = {HOLDS: differences.p_above(-behind), FAILS: differences.p_below(-behind)}
    no_effect = 1.0 if behind else differences.p_equivalence(MARGIN)
    return {name: min(1.0, 2 * p) for name, p in sides.items()} | {NO_EFFECT: no_effect}


def _runs(suite: Suite, lines: Sequence[Line], group: str, is_guide: bool) -> Values:
    """Our runs that have a value of the group, with the pool in this role.

    In a suite that is no table of the paper a problem is its own target, and a setting its own row.
    """
    settings, values = {setting.name: setting for setting in suite.settings}, {}
    for line in lines:
        own, value = settings[line["setting"]], shown_value(line, group)
        if value is not None and (own.is_guide == is_guide or own.method == NO_LABELS):
            target = suite.columns.get(line["problem"], line["problem"])
            values[target, line["seed"], own.method, own.row or own.name] = PERCENT * value
    return values


def _figures(table: str, group: str) -> Values:
    """The figures that the paper prints for the group; their seed is None."""
    return {
        (row.target, None, row.method, row.selection): row.accuracy[group]
        for row in paper_rows()
        if row.table == table and group in row.accuracy
    }


def _paired(claim: Claim, better: Values, than: Values, names: Mapping[str, str]) -> dict[Key, float]:
    """The difference for each target, seed and method of `than` that has a value for all rows of the claim.

    k-means counts only if the claim names it. A claim about one method compares it with each method. `names` maps
    rows to the paper's names for them, if they differ.
    """
    rows, rows_than = ([names.get(row, row) for row in each] for each in (claim.better, claim.than))
    differences = {}
    for target, seed, method in dict.fromkeys(key[:3] for key in than):
        is_itself = method == (claim.method or None) and rows == rows_than and not claim.than_suite
        is_compared = method == claim.than_method if claim.than_method else method != NO_LABELS and not is_itself
        own = np.mean([better.get((target, seed, claim.method_of_better or method, row), np.nan) for row in rows])
        other = np.mean([than.get((target, seed, method, row), np.nan) for row in rows_than])
        if is_compared and np.isfinite(own - other) and target in (claim.targets or (target,)):
            differences[target, seed, method] = float(own - other)
    return differences
