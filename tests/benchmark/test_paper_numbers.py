from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from justright.benchmark.paper_numbers import doubts, paper_rows

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "paper_numbers.csv"


def test_every_table_with_accuracies_is_there():
    assert Counter(row.table for row in paper_rows()) == {
        "tab1": 24,
        "tab2": 68,
        "tab3": 16,
        "tab4": 68,
        "tab5": 15,
        "tab6": 15,
        "taba1": 18,
        "taba2": 9,
        "taba3": 12,
        "taba4": 9,
        "taba5": 9,
        "taba6": 8,
        "taba7": 6,
        "taba8": 10,
    }


def test_no_number_differs_from_the_reference():
    if not REFERENCE.exists():
        pytest.skip("the reference of the paper's numbers is not on this machine")
    with REFERENCE.open(encoding="utf-8") as file:
        theirs = Counter(float(row["value"]) for row in csv.DictReader(file) if row["table"] != "tab:dataset")
    ours = Counter(value for row in paper_rows() for value in (*row.accuracy.values(), *row.change.values()))
    assert ours == theirs


def test_a_few_numbers_stand_where_the_paper_has_them():
    found = {(row.table, row.method, row.selection, row.target): row for row in paper_rows()}
    assert found["tab2", "kmeans", "none", "cub"].accuracy == {"all": 34.7, "old": 49.8, "new": 34.2}
    assert found["tab1", "simgcd", "medium", "cub"].accuracy == {"new": 79.7}
    assert found["tab4", "simgcd", "beta", "cub"].change["all"] == 5.2


def test_what_cannot_be_right_is_marked():
    rows = paper_rows()
    said = {(row.table, row.method, row.selection, row.target): doubts(row, rows) for row in rows}
    outside = [key for key, reasons in said.items() if any("between" in reason for reason in reasons)]
    wrong = sum("numbers give" in reason for reasons in said.values() for reason in reasons)
    assert (len(outside), wrong) == (13, 19)
    assert said["tab4", "simgcd", "beta", "cub"] == [
        "All is printed as +5.2 where its numbers give +4.2",
        "Old is printed as +2.2 where its numbers give +2.3",
    ]
    assert said["tab2", "simgcd", "beta", "cub"] == []
