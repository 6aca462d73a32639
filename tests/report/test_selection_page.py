from __future__ import annotations

import re

import pytest
from tests.report.html_checks import check

from justright.diagnosis.verdict import OWN, Diagnosis, DrawScores
from justright.report import selection_page as module
from justright.report.selection_page import selection_page
from justright.report.selection_report import write_selection_report
from justright.selection import BetaSelector, UniformSelector


@pytest.fixture
def written(weighed, tmp_path):
    outcomes = {OWN: [DrawScores(0.5, 0.5, 1.0)] * 3, "bins": [DrawScores(0.6, 0.6, 0.5)] * 3}
    result = weighed("beta", BetaSelector(domain="affine"), n_resamples=3)
    asked = {"pool": "<birds>", "target": "t"}
    diagnosis = Diagnosis.of(outcomes, 0.2, 10, 2)
    files, problem = write_selection_report(result, asked, diagnosis, tmp_path / "figures", tmp_path / "page.html")
    return result, files, problem, (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_page_asks_the_network_for_nothing(written):
    *_, html = written
    checker = check(html)
    assert all(address.startswith(("#", "data:")) for address in checker.addresses)
    assert not re.search(r"https?://", html)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttp", html)
    assert "default-src 'none'" in html


def test_the_page_says_everything_without_scripts(written):
    result, files, problem, html = written
    assert [file.name for file in files] == ["weights.svg", "page.html"]
    assert "does not say where its images are" in problem
    without = re.sub(r"<script>.*?</script>", "", html, flags=re.S)
    for name in ("birds/0", "&lt;pets&gt; &amp; co/3", "&lt;birds&gt;", result.summary(), "Transfer flow", "Take bins"):
        assert name in without
    assert without.count("<tr>") >= len(result.pool.origins)
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert html.count("<svg") == 1


def test_the_same_selection_gives_the_same_page(written, tmp_path):
    result, *_ = written
    again = tmp_path / "again.html"
    write_selection_report(result, {"pool": "<birds>", "target": "t"}, None, None, again)
    write_selection_report(result, {"pool": "<birds>", "target": "t"}, None, None, tmp_path / "more.html")
    assert again.read_bytes() == (tmp_path / "more.html").read_bytes()


def test_a_long_table_of_classes_is_cut_in_the_middle(weighed, monkeypatch):
    monkeypatch.setattr(module, "MOST_CLASSES", 4)
    result = weighed("none", UniformSelector())
    html = selection_page(result, {}, {})
    check(html)
    assert f"{len(result.pool.origins) - 4} classes in the middle are left out here" in html
    assert html.count("<tr><td>birds") + html.count("<tr><td>&lt;pets") >= 4
    assert "Examples" not in html
    assert "Would another selection" not in html
