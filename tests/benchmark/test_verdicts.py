from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats

from justright.benchmark.claims import FAILS, HOLDS, NOT_RUN, UNDECIDED, verdict, verdicts
from justright.benchmark.suite import Claim, Suite, SuiteProblem, SuiteSetting

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
    return pytest.fail(f"{name} was asked for")


def test_a_claim_is_judged_by_students_interval_over_pairs_of_runs():
    (found,) = verdicts(suite_of(Claim("bins helps", ("bins",), ("none",))), lines_of(VALUES), others)
    points = [6.0, 5.0, 4.0]
    low, high = stats.t.interval(0.95, 2, loc=5.0, scale=stats.sem(points))
    assert found.difference == pytest.approx((5.0, low, high))
    assert (found.n_pairs, found.verdict) == (3, HOLDS)
    assert found.paper is not None
    assert found.cells()[1] == HOLDS


@pytest.mark.parametrize(
    ("interval", "within", "said"),
    [
        ((2, 1, 3), None, HOLDS),
        ((-2, -3, -1), None, FAILS),
        ((0, -1, 1), None, UNDECIDED),
        ((0, -1, 1), 2.0, HOLDS),
        ((4, 3, 5), 2.0, FAILS),
        ((1, -1, 3), 2.0, UNDECIDED),
    ],
)
def test_the_interval_decides(interval, within, said):
    assert verdict(tuple(map(float, interval)), within) == said


def test_several_rows_count_as_their_mean_where_all_of_them_were_run():
    claim = Claim("both help", ("bins", "beta"), ("none",))
    (found,) = verdicts(suite_of(claim), lines_of(VALUES), others)
    assert (found.n_pairs, found.verdict) == (1, NOT_RUN)
    assert found.difference is None, "one pair has no interval"


def test_guides_targets_groups_and_other_methods_are_kept_apart():
    of_guides = Claim("bins helps", ("bins",), ("none",))
    assert verdicts(suite_of(of_guides), lines_of(VALUES), others, is_guide=True)[0].n_pairs == 0
    on_dogs = Claim("bins helps", ("bins",), ("none",), targets=("dogs",))
    assert verdicts(suite_of(on_dogs), lines_of(VALUES), others)[0].n_pairs == 1
    errors = Claim("few", ("bins",), ("bins",), group="new", than_group="new_as_old")
    assert verdicts(suite_of(errors), lines_of(VALUES), others)[0].difference[0] == pytest.approx(
        100 * 0.5233 - 10, abs=0.1
    )
    plain = Claim("k-means is better", ("none",), ("bins",), than_method="simgcd")
    assert verdicts(suite_of(plain), lines_of(VALUES), others)[0].n_pairs == 1


def test_claim_can_compare_two_tables():
    claim = Claim("own labels alone are better", ("none",), ("none",), than_suite="tab2")
    one, other = suite_of(claim, name="tab4"), suite_of(name="tab2")
    worse = lines_of({key: value - 0.1 for key, value in VALUES.items()})
    (found,) = verdicts(one, lines_of(VALUES), lambda name: (other, worse))
    assert found.difference[0] == pytest.approx(10.0)
    assert found.n_pairs == 3, "k-means sees no labels and does not count"
    assert 2 < found.paper < 6, "by the paper's own numbers of Tab. 4 and Tab. 2"


def test_a_comparison_with_k_means_keeps_the_roles_of_the_pool_apart():
    claim = Claim("k-means is better", ("none",), ("bins",), than_method="simgcd")
    both = VALUES | {("kmeans: nonerival", "a", 1): 0.11}
    both |= {("simgcd: binsguide", "a", seed): 0.90 + seed / 10 for seed in (0, 1)}
    (rival,) = verdicts(suite_of(claim), lines_of(both), others)
    (guide,) = verdicts(suite_of(claim), lines_of(both), others, is_guide=True)
    assert rival.difference[0] == pytest.approx(10.5 - 56.5)
    assert guide.difference[0] == pytest.approx(10.5 - 95.0)


def test_only_claims_about_rows_with_a_pool_are_judged_for_guides():
    claims = Claim("bins", ("bins",), ("none",)), Claim("labels", ("medium",), ("similar",))
    judged = verdicts(suite_of(*claims), lines_of(VALUES), others, is_guide=True)
    assert [each.says for each in judged] == ["bins"]


def with_methods(*claims, methods=("simgcd", "mugcd")):
    suite = suite_of(*claims)
    return replace(suite, settings=tuple(setting(method, row) for method in methods for row in ROWS))


TWO_METHODS = {
    (f"{method}: {row}rival", "a", seed): value + seed / 100
    for (method, row), value in {
        ("simgcd", "none"): 0.50, ("simgcd", "bins"): 0.60, ("simgcd", "beta"): 0.55,
        ("mugcd", "none"): 0.70, ("mugcd", "bins"): 0.65, ("mugcd", "beta"): 0.80,
    }.items()
    for seed in (0, 1)
}  # fmt: skip


def test_each_method_is_also_judged_alone_where_there_are_several():
    claim = Claim("bins helps", ("bins",), ("none",))
    whole, first, second = verdicts(with_methods(claim), lines_of(TWO_METHODS), others)
    assert (whole.method, whole.n_pairs, whole.verdict) == ("", 4, UNDECIDED)
    assert whole.difference[0] == pytest.approx(2.5)
    assert [(each.method, each.verdict, each.n_pairs) for each in (first, second)] == [
        ("simgcd", HOLDS, 2),
        ("mugcd", FAILS, 2),
    ]
    assert first.cells()[0] == "the same, simgcd alone"
    assert first.paper != second.paper, "from the rows of that method"


def test_a_method_that_is_said_to_be_the_best_is_compared_with_each():
    best = Claim("mugcd with beta is best", ("beta",), ("none",), method="mugcd")
    whole, first, second = verdicts(with_methods(best), lines_of(TWO_METHODS), others)
    assert {first.method: first.difference[0], second.method: second.difference[0]} == pytest.approx(
        {"simgcd": 30.0, "mugcd": 10.0}
    )
    assert (whole.verdict, whole.difference, whole.method) == (HOLDS, second.difference, ""), "the closest is shown"
    worse = TWO_METHODS | {("simgcd: nonerival", "a", seed): 0.90 + seed / 100 for seed in (0, 1)}
    assert verdicts(with_methods(best), lines_of(worse), others)[0].verdict == FAILS, "one is enough"


def test_missing_rival_leaves_a_claim_open():
    best = Claim("mugcd is best", ("beta",), ("beta",), method="mugcd")
    (found,) = verdicts(with_methods(best), lines_of(TWO_METHODS), others)
    assert (found.n_pairs, found.verdict) == (2, HOLDS)
    assert found.difference[0] == pytest.approx(25.0)
    once = {key: value for key, value in TWO_METHODS.items() if key[0] != "simgcd: betarival" or key[2] == 0}
    (found,) = verdicts(with_methods(best), lines_of(once), others)
    assert (found.verdict, found.difference) == (NOT_RUN, None)


def test_as_good_or_better_allows_some_points_behind():
    assert verdict((-0.5, -1.5, 0.5), behind=2.0) == HOLDS
    assert verdict((5.0, 4.0, 6.0), behind=2.0) == HOLDS
    assert verdict((-4.0, -5.0, -3.0), behind=2.0) == FAILS
    assert verdict((-2.0, -3.0, -1.0), behind=2.0) == UNDECIDED
