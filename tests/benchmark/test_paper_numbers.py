from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from justright.benchmark.paper import paper_rows

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "paper_numbers.csv"


def test_every_table_with_accuracies_is_included():
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


def test_a_few_numbers_are_those_of_the_paper():
    result = {(row.table, row.method, row.selection, row.target): row for row in paper_rows()}
    assert result["tab2", "kmeans", "none", "cub"].accuracy == {"all": 34.7, "old": 49.8, "new": 34.2}
    assert result["tab1", "simgcd", "medium", "cub"].accuracy == {"new": 79.7}
    assert result["tab4", "simgcd", "beta", "cub"].change["all"] == 5.2


def test_impossible_figures_are_marked():
    """All is not between Old and New, or a change differs from that of its numbers."""
    result = {(row.table, row.method, row.selection, row.target): row.doubts for row in paper_rows()}
    outside = [key for key, doubts in result.items() if "between" in doubts.get("all", "")]
    wrong_change = sum("numbers give" in text for doubts in result.values() for text in doubts.values())
    assert (len(outside), wrong_change) == (13, 19)
    assert result["tab4", "simgcd", "beta", "cub"] == {
        "all": "All is printed as +5.2 where its numbers give +4.2",
        "old": "Old is printed as +2.2 where its numbers give +2.3",
    }
    assert set(result["tab2", "simgcd", "bins", "aircraft"]) == {"all", "old", "new"}, "any of the three may be wrong"
    assert result["tab2", "simgcd", "beta", "cub"] == {}


def test_all_lies_between_old_and_new_unless_marked():
    for row in paper_rows():
        if len(row.accuracy) == 3:
            low, high = sorted((row.accuracy["old"], row.accuracy["new"]))
            assert (low <= row.accuracy["all"] <= high) != ("is not between" in row.doubts.get("all", "")), row


def test_different_figures_of_k_means_are_marked():
    result = {(row.table, row.target): row.doubts for row in paper_rows() if row.method == "kmeans"}
    assert result["tab1", "dogs"]["new"] == (
        "New 30.2 is 20.1 in tab2, on the same images; New 30.2 is 18 in tab4, on the same images"
    )
    assert all("new" in doubts for doubts in result.values())


def test_a_misprinted_number_is_read_and_marked():
    result = {(each.table, each.method, each.selection, each.target): each for each in paper_rows()}
    row = result["tab4", "xcon", "bins", "cars"]
    assert row.change["old"] == -1.7
    assert row.doubts == {"old": "Old's change is printed as -1..7, read as -1.7 here"}
