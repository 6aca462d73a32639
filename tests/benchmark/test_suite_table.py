from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from justright.benchmark.suite import Suite, SuiteProblem, SuiteSetting
from justright.benchmark.summary import interval, paired, suite_table
from justright.benchmark.tables import settings_table
from justright.utils.errors import DataError

SUITE = Suite(
    name="s",
    about="",
    run={},
    problems=tuple(SuiteProblem(name, "glyphs") for name in "pqr"),
    settings=tuple(SuiteSetting(name) for name in ("own", "all", "never run")),
    seeds=(0, 1),
    baseline="own",
)


def lines_of(values):
    return [
        {"problem": p, "setting": s, "seed": seed, "all": value, "new": value / 2, "old": None}
        for (p, s, seed), value in values.items()
    ]


VALUES = {
    ("p", "own", 0): 0.50, ("p", "own", 1): 0.54, ("p", "all", 0): 0.60, ("p", "all", 1): 0.58,
    ("q", "own", 0): 0.30, ("q", "all", 0): 0.28, ("q", "all", 1): 0.99,
    ("r", "all", 0): 0.70,
}  # fmt: skip


def test_differences_are_paired_by_problem_and_seed():
    result = paired(lines_of(VALUES), "all", "own", "all")
    by_hand = [np.mean([0.60 - 0.50, 0.58 - 0.54]), 0.28 - 0.30]  # q has one seed in common, r none
    assert result == pytest.approx(by_hand)


def test_interval_is_students_over_problems():
    values = [0.1, 0.3, -0.1, 0.2]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert interval(values) == pytest.approx((0.125, low, high))
    assert interval([0.1]) is None


def test_row_averages_seeds_within_a_problem_first():
    own, everything = suite_table(SUITE, lines_of(VALUES))
    assert (own.setting, own.n_problems, own.n_runs) == ("own", 2, 3)
    assert own.all == pytest.approx((0.52 + 0.30) / 2)
    assert own.all_difference is None
    assert own.old is None
    assert everything.n_better == 1
    assert everything.all_difference[0] == pytest.approx((0.07 - 0.02) / 2)
    assert settings_table("title", [own, everything]).rows[1][0] == "all"


def test_any_setting_may_be_the_baseline():
    own, everything = suite_table(SUITE.against("all"), lines_of(VALUES))
    assert everything.all_difference is None
    assert own.all_difference[0] == pytest.approx(-(0.07 - 0.02) / 2)
    with pytest.raises(DataError, match="no setting 'most'"):
        SUITE.against("most")
