from __future__ import annotations

from tests.benchmark.test_table_text import TABLE, TABLES

from justright.report.suite_page import write_suite_page


def test_the_page_shows_every_table_and_the_claims_and_escapes_names(tmp_path):
    odd = [TABLES[0]._replace(title="<b>tab2</b>"), *TABLES[1:]]
    write_suite_page(TABLE, odd, tmp_path / "tab2.html")
    page = (tmp_path / "tab2.html").read_text()
    assert "56.5 ±0.7" in page
    assert "<td>holds</td>" in page
    assert "<b>tab2</b>" not in page
    assert "http://" not in page
