from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.benchmark.test_verdicts import VALUES, lines_of, suite_of

from justright.benchmark.paper import EVERY, paper_table
from justright.benchmark.tables import notes

MORE = VALUES | {("simgcd: nonerival", "b", 1): 0.42, ("simgcd: binsrival", "b", 1): 0.46}  # every target and seed


def table():
    return paper_table(replace(suite_of(), groups=("new",)), lines_of(VALUES))


def cell(row, target, of=None):
    return next(each for each in (of or table()).rows if each.name == row).cells[target, "new"]


def test_cell_is_mean_and_spread_and_change_is_paired():
    bins = cell("simgcd, bins", "cub")
    assert (bins.mean, bins.n) == (pytest.approx(56.5), 2)
    assert bins.spread == pytest.approx(math.sqrt(0.5))
    assert bins.change[0] == pytest.approx(5.5)
    assert bins.change[1] < 5.5 < bins.change[2]
    assert cell("simgcd, none", "cub").change is None


def test_cell_has_the_papers_figure_and_change():
    assert (cell("simgcd, bins", "cub").paper, cell("simgcd, bins", "cub").paper_change) == (56.7, 4.4)
    assert cell("simgcd, none", "cub").paper_change is None
    mean = cell("simgcd, bins", EVERY, paper_table(replace(suite_of(), groups=("new",)), lines_of(MORE)))
    assert mean.paper == pytest.approx((56.7 + 55.6) / 2)
    assert mean.change[0] == pytest.approx((6 + 5 + 4 + 4) / 4)
    assert mean.n == 4


def test_mean_over_targets_uses_common_seeds_only():
    assert cell("simgcd, bins", EVERY).n == 2, "seed 1 of dogs was not run"
    assert cell("simgcd, bins", EVERY).mean == pytest.approx((56 + 44) / 2)
    (row,) = [row for row in table().rows if row.name == "kmeans, none"]
    assert (EVERY, "new") not in row.cells, "dogs were not run"
    assert (row.n_runs, row.n_wanted) == (1, 4)
    assert "kmeans, none (1 of 4)" in notes(table())[-1]


def test_notes_name_the_base_of_changes():
    assert {row.name: row.against for row in table().rows}["simgcd, bins"] == "none"
    assert "against none" in notes(table())[1]


def test_spread_over_targets_is_that_of_the_mean():
    lines = lines_of({("simgcd: noneguide", p, seed): value for p, seed, value in
                      [("a", 0, 0.1), ("b", 0, 0.9), ("a", 1, 0.2), ("b", 1, 0.8)]})  # fmt: skip
    made = paper_table(replace(suite_of(), groups=("new",)), lines)
    result = cell("simgcd, none (guide)", EVERY, made)
    assert result.spread == pytest.approx(0.0)
    assert result.paper is None


def test_rows_without_runs_are_left_out_and_doubts_are_kept():
    assert [row.name for row in table().rows] == ["kmeans, none", "simgcd, none", "simgcd, bins", "simgcd, beta"]
    aircraft = replace(suite_of(), groups=("new",), columns={"a": "aircraft", "b": "dogs"})
    made = paper_table(aircraft, lines_of(VALUES))
    assert cell("simgcd, bins", "aircraft", made).doubts
    assert made.doubts[0].startswith("kmeans, none, aircraft: New 19.2 is 16.8 in tab1")
    assert len(made.doubts) == len(set(made.doubts))


def test_counts_are_not_percentages_and_have_the_papers_figure():
    printed = {"printed": {"cub": [1500], "dogs": [3000]}, "doubted": {"cub": {"new": "too round"}}}
    suite = replace(suite_of(), groups=("new",), only_counts=True, **printed)
    result = cell("kmeans, none", "cub", paper_table(suite, lines_of({("kmeans: nonerival", "a", 0): 1498})))
    assert (result.mean, result.paper, result.doubts) == (1498, 1500, ("too round",))
