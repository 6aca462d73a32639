from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from justright.benchmark.claims import (
    FAILS,
    HOLDS,
    NO_EFFECT,
    NOT_RUN,
    OUTCOMES,
    UNDECIDED,
    is_converged,
    outcome_p_values,
    verdicts,
)
from justright.benchmark.suite import Claim, Suite, SuiteProblem, SuiteSetting
from justright.evaluation.comparisons import ProblemDifferences

ROWS = ("none", "bins", "beta")


def setting(method, row, role="rival"):
    return SuiteSetting(f"{method}: {row}{role}", {"method": method, "pool_role": role}, row=row)


def suite_of(*claims, name="tab2"):
    settings = [setting("kmeans", "none"), *(setting("simgcd", row) for row in ROWS)]
    settings += [setting("simgcd", row, "guide") for row in ROWS]
    columns = {"a": "cub", "b": "dogs"}
    problems = tuple(SuiteProblem(each, "glyphs") for each in columns)
    return Suite(name, "", {}, problems, tuple(settings), (0, 1), columns=columns, claims=claims)


def lines_of(values):
    return [
        {"problem": p, "setting": name, "seed": seed, "new": new, "new_as_old": 0.1}
        for (name, p, seed), new in values.items()
    ]


VALUES = {
    ("simgcd: nonerival", "a", 0): 0.50, ("simgcd: binsrival", "a", 0): 0.56,
    ("simgcd: nonerival", "a", 1): 0.52, ("simgcd: binsrival", "a", 1): 0.57,
    ("simgcd: nonerival", "b", 0): 0.40, ("simgcd: binsrival", "b", 0): 0.44,
    ("simgcd: betarival", "a", 0): 0.58,
    ("kmeans: nonerival", "a", 0): 0.10,
}  # fmt: skip


def others(name):
    return pytest.fail(f"the suite {name} was requested")


def test_problem_is_the_unit_of_a_verdict():
    (result,) = verdicts(suite_of(Claim("bins helps", ("bins",), ("none",))), lines_of(VALUES), others)
    points = [5.5, 4.0]  # problem a has two seeds
    low, high = stats.t.interval(0.95, 1, loc=4.75, scale=stats.sem(points))
    assert result.difference == pytest.approx((4.75, low, high))
    assert (result.n_pairs, result.n_problems, result.verdict) == (3, 2, UNDECIDED)
    assert result.paper is not None
    assert result.cells()[1:4:2] == (UNDECIDED, "2")


def outcome(mean, spread, within=None, behind=0.0, n=6):
    """The outcome for differences with this mean and spread, without a correction."""
    values = mean + spread * np.linspace(-1, 1, n)
    p_values = outcome_p_values(ProblemDifferences(values), within, behind)
    return next((name for name in OUTCOMES if p_values[name] <= 0.05), UNDECIDED)


@pytest.mark.parametrize(
    ("mean", "spread", "within", "expected"),
    [
        (2.0, 0.5, None, HOLDS),
        (-2.0, 0.5, None, FAILS),
        (0.1, 0.5, None, NO_EFFECT),
        (0.0, 9.0, None, UNDECIDED),
        (0.0, 0.5, 2.0, HOLDS),
        (4.0, 0.5, 2.0, FAILS),
        (1.5, 3.0, 2.0, UNDECIDED),
    ],
)
def test_four_outcomes(mean, spread, within, expected):
    assert outcome(mean, spread, within) == expected


def test_as_good_as_allows_some_points_behind():
    assert outcome(-0.5, 0.5, behind=2.0) == HOLDS
    assert outcome(5.0, 0.5, behind=2.0) == HOLDS
    assert outcome(-4.0, 0.5, behind=2.0) == FAILS
    assert outcome(-2.0, 1.0, behind=2.0) == UNDECIDED


def many_problems(differences):
    """A suite of one method with a line for each problem: none at 50 %, bins better by the differences."""
    names = [f"p{number}" for number in range(len(differences))]
    values = {("simgcd: nonerival", name, 0): 0.5 for name in names}
    values |= {("simgcd: binsrival", name, 0): 0.5 + d / 100 for name, d in zip(names, differences, strict=True)}
    return dict.fromkeys(names, "") | {name: name for name in names}, lines_of(values)


def test_more_claims_need_smaller_p_values():
    columns, lines = many_problems([1.0, 4.0, 2.0, 3.0, 0.2])
    claims = [Claim(f"claim {number}", ("bins",), ("none",)) for number in range(20)]
    (alone,) = verdicts(replace(suite_of(claims[0]), columns=columns), lines, others)
    together = verdicts(replace(suite_of(*claims), columns=columns), lines, others)
    assert alone.verdict == HOLDS
    assert {each.verdict for each in together} == {UNDECIDED}


def test_interval_may_exclude_the_size_in_the_paper():
    columns, lines = many_problems([30.0, 31.0, 29.0, 30.5])
    (result,) = verdicts(replace(suite_of(Claim("bins", ("bins",), ("none",))), columns=columns), lines, others)
    assert result.is_paper_excluded
    assert result.cells()[-1].endswith(", excluded")
    (close,) = verdicts(suite_of(Claim("bins", ("bins",), ("none",))), lines_of(VALUES), others)
    assert close.is_paper_excluded is False, "two problems have a very wide interval"


def test_unconverged_method_does_not_count_with_others():
    claim = Claim("bins helps", ("bins",), ("none",))
    suite, lines = with_methods(claim), lines_of(TWO_METHODS)
    for line in lines:
        line |= {"n_target": 20, "n_used": 14 if line["setting"].startswith("mugcd") else 20}
    assert not is_converged(suite, lines, "mugcd")
    whole, first, second = verdicts(suite, lines, others)
    assert whole.left_out == ("mugcd",)
    assert whole.difference == first.difference
    assert second.method == "mugcd"
    assert "without mugcd: not converged" in whole.cells()[0]


def test_several_rows_count_as_their_mean_if_all_were_run():
    claim = Claim("both help", ("bins", "beta"), ("none",))
    (result,) = verdicts(suite_of(claim), lines_of(VALUES), others)
    assert (result.n_pairs, result.verdict) == (1, NOT_RUN)
    assert result.difference is None, "one problem has no interval"


def test_claims_separate_roles_targets_groups_and_methods():
    of_guides = Claim("bins helps", ("bins",), ("none",))
    assert verdicts(suite_of(of_guides), lines_of(VALUES), others, is_guide=True)[0].n_pairs == 0
    on_dogs = Claim("bins helps", ("bins",), ("none",), targets=("dogs",))
    assert verdicts(suite_of(on_dogs), lines_of(VALUES), others)[0].n_pairs == 1
    errors = Claim("few", ("bins",), ("bins",), group="new", than_group="new_as_old")
    (result,) = verdicts(suite_of(errors), lines_of(VALUES), others)
    assert result.difference[0] == pytest.approx((46.5 + 34.0) / 2)
    plain = Claim("k-means is better", ("none",), ("bins",), than_method="simgcd")
    assert verdicts(suite_of(plain), lines_of(VALUES), others)[0].n_pairs == 1


def test_claim_can_compare_two_tables():
    claim = Claim("own labels alone are better", ("none",), ("none",), than_suite="tab2")
    one, other = suite_of(claim, name="tab4"), suite_of(name="tab2")
    worse = lines_of({key: value - 0.1 for key, value in VALUES.items()})
    (result,) = verdicts(one, lines_of(VALUES), lambda name: (other, worse))
    assert result.difference[0] == pytest.approx(10.0)
    assert result.n_pairs == 3, "k-means sees no labels and does not count"
    assert 2 < result.paper < 6, "by the paper's own numbers of Tab. 4 and Tab. 2"


def test_comparison_with_k_means_keeps_pool_roles_apart():
    claim = Claim("k-means is better", ("none",), ("bins",), than_method="simgcd")
    both = VALUES | {("kmeans: nonerival", "b", 0): 0.11}
    both |= {("simgcd: binsguide", problem, 0): value for problem, value in (("a", 0.9), ("b", 0.8))}
    (rival,) = verdicts(suite_of(claim), lines_of(both), others)
    (guide,) = verdicts(suite_of(claim), lines_of(both), others, is_guide=True)
    assert rival.difference[0] == pytest.approx((10 - 56 + 11 - 44) / 2)
    assert guide.difference[0] == pytest.approx((10 - 90 + 11 - 80) / 2)


def test_guides_are_judged_only_on_rows_with_a_pool():
    claims = Claim("bins", ("bins",), ("none",)), Claim("labels", ("medium",), ("similar",))
    judged = verdicts(suite_of(*claims), lines_of(VALUES), others, is_guide=True)
    assert [each.claim for each in judged] == ["bins"]


def with_methods(*claims, methods=("simgcd", "mugcd")):
    suite = suite_of(*claims)
    return replace(suite, settings=tuple(setting(method, row) for method in methods for row in ROWS))


TWO_METHODS = {
    (f"{method}: {row}rival", problem, 0): value + (problem == "b") / 100
    for (method, row), value in {
        ("simgcd", "none"): 0.50, ("simgcd", "bins"): 0.60, ("simgcd", "beta"): 0.55,
        ("mugcd", "none"): 0.70, ("mugcd", "bins"): 0.65, ("mugcd", "beta"): 0.80,
    }.items()
    for problem in "ab"
}  # fmt: skip


def test_each_of_several_methods_is_also_judged_alone():
    claim = Claim("bins helps", ("bins",), ("none",))
    whole, first, second = verdicts(with_methods(claim), lines_of(TWO_METHODS), others)
    assert (whole.method, whole.n_pairs, whole.n_problems) == ("", 4, 2)
    assert whole.difference[0] == pytest.approx(2.5)
    assert [(each.method, each.difference[0] > 0, each.n_problems) for each in (first, second)] == [
        ("simgcd", True, 2),
        ("mugcd", False, 2),
    ]
    assert first.cells()[0] == "the same, simgcd alone"
    assert first.paper != second.paper, "from the rows of that method"


def test_best_method_is_compared_with_each_other():
    best = Claim("mugcd with beta is best", ("beta",), ("none",), method="mugcd")
    whole, first, second = verdicts(with_methods(best), lines_of(TWO_METHODS), others)
    assert {first.method: first.difference[0], second.method: second.difference[0]} == pytest.approx(
        {"simgcd": 30.0, "mugcd": 10.0}
    )
    assert (whole.difference, whole.method) == (second.difference, ""), "the closest is shown"
    worse = TWO_METHODS | {("simgcd: nonerival", problem, 0): 0.90 for problem in "ab"}
    assert verdicts(with_methods(best), lines_of(worse), others)[0].difference[0] < 0, "one better method is enough"


def test_missing_rival_leaves_a_claim_open():
    best = Claim("mugcd is best", ("beta",), ("beta",), method="mugcd")
    (result,) = verdicts(with_methods(best), lines_of(TWO_METHODS), others)
    assert (result.n_pairs, result.n_problems) == (2, 2)
    assert result.difference[0] == pytest.approx(25.0)
    once = {key: value for key, value in TWO_METHODS.items() if key[0] != "simgcd: betarival" or key[1] == "a"}
    (result,) = verdicts(with_methods(best), lines_of(once), others)
    assert (result.verdict, result.difference) == (NOT_RUN, None)


def test_rows_of_a_plain_suite_are_its_settings():
    settings = tuple(SuiteSetting(name, {"selector": name}) for name in ("none", "bins"))
    problems = tuple(SuiteProblem(f"p{number}", "glyphs") for number in range(5))
    suite = Suite("study", "", {}, problems, settings, claims=(Claim("bins helps", ("bins",), ("none",)),))
    values = {("none", f"p{number}", 0): 0.5 for number in range(5)}
    values |= {("bins", f"p{number}", 0): 0.6 + number / 100 for number in range(5)}
    (result,) = verdicts(suite, lines_of(values), others)
    assert (result.n_problems, result.verdict, result.paper) == (5, HOLDS, None)
    assert result.difference[0] == pytest.approx(12.0)
