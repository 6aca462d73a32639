from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from justright.benchmark.paper import doubts, paper_rows

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


def test_what_cannot_be_right_is_marked_where_it_stands():
    rows = paper_rows()
    said = {(row.table, row.method, row.selection, row.target): doubts(row, rows) for row in rows}
    outside = [key for key, reasons in said.items() if any("between" in each for each in reasons.get("all", []))]
    wrong = sum("numbers give" in each for reasons in said.values() for some in reasons.values() for each in some)
    assert (len(outside), wrong) == (13, 19)
    assert said["tab4", "simgcd", "beta", "cub"] == {
        "all": ["All is printed as +5.2 where its numbers give +4.2"],
        "old": ["Old is printed as +2.2 where its numbers give +2.3"],
    }
    assert set(said["tab2", "simgcd", "bins", "aircraft"]) == {"all", "old", "new"}, "any of the three may be wrong"
    assert said["tab2", "simgcd", "beta", "cub"] == {}


def test_k_means_sees_no_labels_so_its_rows_should_agree():
    rows = paper_rows()
    said = {(row.table, row.target): doubts(row, rows) for row in rows if row.method == "kmeans"}
    assert said["tab1", "dogs"]["new"] == [
        "New 30.2 is 20.1 in tab2, on the same images",
        "New 30.2 is 18 in tab4, on the same images",
    ]
    assert all("new" in reasons for reasons in said.values())


def test_what_is_printed_as_no_number_is_marked_and_read_all_the_same():
    rows = paper_rows()
    found = {(each.table, each.method, each.selection, each.target): each for each in rows}
    row = found["tab4", "xcon", "bins", "cars"]
    assert row.change["old"] == -1.7
    assert doubts(row, rows) == {"old": ["Old's change is printed as -1..7, read as -1.7 here"]}
