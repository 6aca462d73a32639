from __future__ import annotations

import csv
import json

import pytest
from tests.benchmark.test_suite_table import SUITE, VALUES, lines_of

from justright.benchmark.summary import PROBLEM_COLUMNS, problem_rows
from justright.benchmark.tables import problem_tables, problems_as_csv

USED = {"own": 9, "all": 10}
LINES = [line | {"n_categories": 10, "n_used": USED[line["setting"]]} for line in lines_of(VALUES)]
ROWS = problem_rows(SUITE, LINES)


def test_problem_table_has_mean_and_deviation():
    tables = problem_tables(ROWS)
    assert [each.title for each in tables] == ["p", "q", "r"]
    assert tables[0].rows[0] == ("own", "2", "52.0 ±2.8", "", "26.0 ±1.4", "9 of 10")
    assert tables[1].rows[0] == ("own", "1", "30.0", "", "15.0", "9 of 10"), "one seed has no spread"
    assert [row[0] for row in tables[2].rows] == ["all"], "settings without runs have no row"


def test_mean_of_used_categories_keeps_its_decimal():
    (table, *_) = problem_tables(problem_rows(SUITE, [line | {"n_used": 8 + line["seed"]} for line in LINES]))
    assert table.rows[0][-1] == "8.5 of 10"
    (table, *_) = problem_tables(problem_rows(SUITE, lines_of(VALUES)))
    assert table.rows[0][-1] == ""


def test_csv_and_json_hold_the_numbers():
    rows = list(csv.DictReader(problems_as_csv(ROWS).splitlines()))
    assert tuple(rows[0]) == PROBLEM_COLUMNS
    assert len(rows) == len(ROWS) == 5
    assert (rows[0]["all"], rows[0]["old"], rows[0]["categories in use"]) == ("52.00", "", "9.00")
    json.dumps(ROWS, allow_nan=False)
    assert ROWS[0]["new"] == pytest.approx(26.0)
