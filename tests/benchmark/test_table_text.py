from __future__ import annotations

from dataclasses import replace

from tests.benchmark.test_verdicts import VALUES, lines_of, others, suite_of

from justright.benchmark.claims import verdicts
from justright.benchmark.paper import paper_table
from justright.benchmark.suite import Claim
from justright.benchmark.tables import claims_table, latex, markdown, notes, text_tables

SUITE = replace(suite_of(Claim("bins helps by 5 %", ("bins",), ("none",))), groups=("new",))
LINES = lines_of(VALUES)
TABLE = paper_table(SUITE, LINES)
CLAIMS = claims_table(TABLE.name, verdicts(SUITE, LINES, others))
TABLES = [*text_tables(TABLE), CLAIMS]


def test_tables_are_those_of_targets_their_mean_and_the_claims():
    assert [each.title for each in TABLES] == [
        *("tab2, cub (here: a)", "tab2, dogs (here: b)", "tab2, mean over targets", "tab2: claims"),
    ]
    first = TABLES[0]
    assert first.columns == ("", "New", "New, change", "New, paper")
    row = {each[0]: each[1:] for each in first.rows}["simgcd, bins"]
    assert row[0] == "56.5 ±0.7"
    assert row[1].startswith("+5.5 [")
    assert row[2] == "56.7 (+4.4)"
    assert TABLES[-1].rows[0][:2] == ("bins helps by 5 %", "undecided")


def test_markdown_and_latex_have_the_same_content():
    text = markdown(TABLES, notes(TABLE), ["one_thing"])
    assert "| simgcd, bins | 56.5 ±0.7 |" in text
    assert "| bins helps by 5 % | undecided |" in text
    assert "Change: against none, paired by seed" in text
    assert text.endswith("**Figures of the paper in doubt**\n\n- one_thing\n")
    tex = latex(TABLES, notes(TABLE), ["one_thing"])
    assert "% Change: against none" in tex
    assert tex.endswith("% one_thing\n")
    assert r"simgcd, bins & 56.5 $\pm$0.7 &" in tex
    assert r"5 \% & undecided" in tex
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == len(TABLES)


def test_no_claims_table_without_claims_or_runs():
    assert claims_table(TABLE.name, []) is None
    only = paper_table(SUITE, lines_of({key: value for key, value in VALUES.items() if key[1] == "a"}))
    assert [each.title for each in text_tables(only)] == ["tab2, cub (here: a)"]


def test_figures_in_doubt_are_marked():
    aircraft = replace(SUITE, columns={"a": "aircraft", "b": "dogs"})
    (first, *_) = text_tables(paper_table(aircraft, LINES))
    assert {row[0]: row[-1] for row in first.rows}["simgcd, bins"].endswith("?")
