from __future__ import annotations

import csv
from dataclasses import replace

from tests.benchmark.test_verdicts import VALUES, lines_of, others, suite_of

from justright.benchmark.paper_table import paper_table
from justright.benchmark.suite import Claim
from justright.benchmark.table_text import CSV_COLUMNS, as_csv, latex, markdown, text_tables
from justright.benchmark.verdicts import verdicts

SUITE = replace(suite_of(Claim("bins helps by 5 %", ("bins",), ("none",))), groups=("new",))
LINES = lines_of(VALUES)
TABLE = paper_table(SUITE, LINES)
TABLES = text_tables(TABLE, verdicts(SUITE, LINES, others))


def test_there_is_a_table_a_target_their_mean_and_the_claims():
    assert [each.title for each in TABLES] == [
        *("tab2, cub (here: a)", "tab2, dogs (here: b)", "tab2, mean over targets", "tab2: claims"),
    ]
    first = TABLES[0]
    assert first.columns == ("", "New", "New, change", "New, paper")
    row = {each[0]: each[1:] for each in first.rows}["simgcd, bins"]
    assert row[0] == "56.5 ±0.7"
    assert row[1].startswith("+5.5 [")
    assert row[2] == "56.7 (+4.4)"
    assert TABLES[-1].rows[0][:2] == ("bins helps by 5 %", "holds")


def test_markdown_and_latex_say_the_same():
    said = markdown(TABLES)
    assert "| simgcd, bins | 56.5 ±0.7 |" in said
    assert "| bins helps by 5 % | holds |" in said
    tex = latex(TABLES)
    assert r"simgcd, bins & 56.5 $\pm$0.7 &" in tex
    assert r"5 \% & holds" in tex
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == len(TABLES)


def test_csv_has_a_row_a_number_and_empty_cells_for_what_is_not_there():
    rows = list(csv.DictReader(as_csv(TABLE).splitlines()))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert len(rows) == sum(len(row.cells) for row in TABLE.rows)
    bins = next(row for row in rows if (row["row"], row["target"]) == ("bins", "cub"))
    assert (bins["mean"], bins["change"], bins["paper"], bins["role"]) == ("56.50", "5.50", "56.70", "rival")
    plain = next(row for row in rows if row["method"] == "kmeans")
    assert (plain["spread"], plain["change"]) == ("", "")


def test_figures_in_doubt_carry_a_mark():
    aircraft = replace(SUITE, columns={"a": "aircraft", "b": "dogs"})
    (first, *_) = text_tables(paper_table(aircraft, LINES))
    assert {row[0]: row[-1] for row in first.rows}["simgcd, bins"].endswith("?")
