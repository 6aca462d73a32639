from __future__ import annotations

import re

import pytest
from tests.made_runs import make_run
from tests.report.html_checks import check, text_of
from tests.report.test_run_page import opened

from justright.report.comparison import Comparison
from justright.report.comparison_page import write_comparison


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two seeds with selection, one without; the last has less than the others."""
    root, runs = tmp_path_factory.mktemp("compared"), []
    for name, seed, n_wrong in (("beta-0", 0, 15), ("beta-1", 1, 25), ("none <b>", 0, 60)):
        run = make_run(root / name, per_class=6, seed=seed, n_wrong=n_wrong)
        run.save_about(dict(run.about) | {"selector": name[:4]})
        runs.append(run)
    (runs[2].path / "count.json").unlink()
    (runs[2].path / "weights.parquet").unlink()
    comparison = Comparison.of([type(run).open(run.path) for run in runs])
    write_comparison(comparison, root / "page.html")
    return comparison, (root / "page.html").read_text(encoding="utf-8")


def test_numbers_are_those_of_the_runs(compared):
    comparison, html = compared
    check(html)
    said = text_of(html)
    assert "none &lt;b&gt;" in said
    for run in comparison.runs:
        low, high = run.scores.intervals["new"]
        assert f"{100 * run.scores.new:.1f} [{100 * low:.1f}, {100 * high:.1f}]" in said
    ((_, changes),) = comparison.changes()
    for change in changes:
        assert f"{change.group.capitalize()} {change} 2 / 1 {change.verdict()}" in said
    assert "selector beta beta none" in said
    assert "labeled-search: 24 (22 to 27)" in said
    assert "not estimated" in said
    assert "nothing was selected" in said
    weight = comparison.runs[0].run.selection.classes["weight"].to_numpy()
    assert f"beta-0 {int((weight > 0).sum())} {len(weight)}" in said


def test_the_page_stands_alone_in_a_browser(compared, chromium, tmp_path):
    _, html = compared
    assert not re.search(r"https?://", html)
    seen = opened(chromium, html, tmp_path, width=400)
    assert seen.problems == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400
