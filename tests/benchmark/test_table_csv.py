from __future__ import annotations

import csv
import json

from tests.benchmark.test_table_text import LINES, SUITE, TABLE
from tests.benchmark.test_verdicts import others

from justright.benchmark.claims import verdicts
from justright.benchmark.tables import CSV_COLUMNS, as_csv, records


def test_csv_has_empty_cells_for_missing_numbers():
    rows = list(csv.DictReader(as_csv(TABLE).splitlines()))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert len(rows) == sum(len(row.cells) for row in TABLE.rows)
    bins = next(row for row in rows if (row["row"], row["target"]) == ("bins", "cub"))
    assert (bins["mean"], bins["change"], bins["paper"], bins["role"]) == ("56.50", "5.50", "56.70", "rival")
    plain = next(row for row in rows if row["method"] == "kmeans")
    assert (plain["spread"], plain["change"]) == ("", "")
    json.dumps(records(TABLE), allow_nan=False)
    assert next(each for each in records(TABLE) if each["method"] == "kmeans")["spread"] is None


def test_claims_use_the_same_columns_below_the_numbers():
    (judged,) = verdicts(SUITE, LINES, others)
    rows = list(csv.DictReader(as_csv(TABLE, [judged]).splitlines()))
    numbers, (claim,) = rows[:-1], rows[-1:]
    assert numbers == list(csv.DictReader(as_csv(TABLE).splitlines()))
    assert {row["claim"] for row in numbers} == {""}
    assert (claim["claim"], claim["verdict"], claim["runs"]) == ("bins helps by 5 %", "undecided", "3")
    assert (claim["change"], claim["target"], claim["mean"]) == ("4.75", "", "")
    low, high = judged.difference[1:]
    assert (claim["change low"], claim["change high"]) == (f"{low:.2f}", f"{high:.2f}")
