from __future__ import annotations

from dataclasses import replace

from tests.benchmark.test_table_text import CLAIMS, TABLE, TABLES

from justright.report.suite_page import write_suite_page


def page_of(table, tables, claims, folder):
    write_suite_page(table, tables, claims, folder / "page.html")
    return (folder / "page.html").read_text()


def test_the_page_shows_every_table_the_claims_and_a_figure_and_escapes_names(tmp_path):
    odd = [TABLES[0]._replace(title="<b>tab2</b>"), *TABLES[1:-1]]
    page = page_of(TABLE, odd, CLAIMS, tmp_path)
    assert "56.5 ±0.7" in page
    assert "<td>holds</td>" in page
    assert "<b>tab2</b>" not in page
    assert "http://" not in page
    assert "Change: against none" in page
    assert "<svg" in page


def test_a_page_of_counts_has_no_figure_and_no_claims(tmp_path):
    page = page_of(replace(TABLE, is_count=True), TABLES[:1], None, tmp_path)
    assert "<svg" not in page
    assert "Claims" not in page
