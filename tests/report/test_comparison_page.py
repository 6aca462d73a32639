from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.accessibility import faults
from tests.made_runs import make_run
from tests.report.fake_runs import fake_run
from tests.report.html_checks import check, opened, part, text_of

from justright.report.compared_runs import ComparedRun
from justright.report.comparison import Comparison, ComparisonPage, write_comparison, write_pages
from justright.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two seeds with selection and one run without; the last lacks some files."""
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
    text = text_of(html)
    assert "none &lt;b&gt;" in text
    for run in comparison.runs:
        low, high = run.scores.intervals["new"]
        assert f"{100 * run.scores.new:.1f} [{100 * low:.1f}, {100 * high:.1f}]" in text
    ((_, changes),) = comparison.changes()
    for change in changes:
        assert f"{change.group.capitalize()} {change} 2 / 1 {change.verdict()}" in text
    assert "selector beta beta none" in text
    assert "labeled-search: 24 (22 to 27)" in text
    assert "not estimated" in text
    assert "no selection" in text
    weight = comparison.runs[0].run.selection.classes["weight"].to_numpy()
    assert f"beta-0 {int((weight > 0).sum())} {len(weight)}" in text


def test_the_page_stands_alone_in_a_browser(compared, chromium, tmp_path):
    _, html = compared
    assert not re.search(r"https?://", html)
    seen = opened(chromium, html, tmp_path, width=400)
    assert seen.problems == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_first_screen_has_the_expected_accuracy_of_each_run(compared):
    comparison, html = compared
    top = text_of(html.partition("<nav")[0])
    for run in comparison.runs:
        assert f"{run.run.expected} images" in top
    assert "Simple methods" not in top, "they were not computed"


def test_simple_methods_are_on_the_first_screen(compared, tmp_path):
    comparison, _ = compared
    path = Path(shutil.copytree(comparison.runs[0].run.path, tmp_path / "run"))
    run = RunFolder.open(path)
    check = {"baselines": {"k-means": {"all": 0.293}, "Ward": {"all": 0.327}}}
    run.save_about(run.about | {"check": check})
    runs = [ComparedRun("simple", RunFolder.open(path)), comparison.runs[2]]
    text = text_of(shown("verdict", *runs)).replace("\u00a0", " ")
    assert "Simple methods on the features before training: k-means 29.3 %, Ward 32.7 %." in text


def test_write_pages_writes_the_comparison_and_each_report(compared, tmp_path):
    comparison, _ = compared
    runs = {run.name: run.run for run in comparison.runs[:2]}
    pages = write_pages(runs, tmp_path / "all.html")
    assert pages == [tmp_path / "all.html", *(run.path / "report.html" for run in runs.values())]
    assert "2 runs side by side" in pages[0].read_text(encoding="utf-8")
    assert all("Report of" in page.read_text(encoding="utf-8") for page in pages[1:])


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_comparison_has_no_serious_accessibility_fault(compared, chromium, tmp_path, width, scheme):
    seen = opened(chromium, compared[1], tmp_path, width=width, color_scheme=scheme)
    assert faults(seen.page) == []


def page_of(*runs) -> ComparisonPage:
    return ComparisonPage(Comparison(tuple(runs)))


def shown(name, *runs) -> str:
    return part("comparison", name, getattr(page_of(*runs), name)())


def test_seeds_are_averaged_where_there_are_several():
    text = text_of(shown("seeds", fake_run("a", seed=0, accuracy=0.5), fake_run("b", seed=1, accuracy=0.7)))
    assert "a and 1 more beta 2 60.0 ± 14.1" in text
    assert page_of(fake_run("a"), fake_run("b", method="x")).seeds() is None


def test_unhelpful_selection_is_called_noise():
    runs = fake_run("a", accuracy=0.60), fake_run("b", selector="none", accuracy=0.61)
    text = text_of(shown("verdict", *runs))
    assert "a : New -1.0 [-8.1, +6.1] points against no selection, within the noise." in text
    assert text.count("points against") == 1
    assert "-1.0 [-8.1, +6.1] 1 / 1 within the noise" in text_of(shown("changes", *runs))


def test_best_and_worst_settings_are_named():
    runs = [fake_run(f"r{n}", accuracy=a, config={"rate": n}) for n, a in enumerate((0.6, 0.9, 0.2, 0.62))]
    runs += [fake_run(f"n{n}", selector="none", config={"rate": n}) for n in range(4)]
    text = text_of(shown("verdict", *runs))
    assert "New against no selection: better in 1, worse in 1, within the noise in 2 of 4 settings." in text
    assert re.findall(r"(r\d) : New ([+-]\d+)", text) == [("r1", "+30"), ("r2", "-40")]


def test_page_starts_with_verdict_and_ends_with_settings(compared):
    comparison, html = compared
    assert re.findall(r"<h2>(.*?)</h2>", html)[-2:] == ["Settings", "Timings"]
    top = html.partition("<nav")[0]
    ((group, changes),) = comparison.changes()
    assert f"{group.name} : New {changes[-1]} points" in text_of(top)
    best = max(comparison.runs, key=lambda run: run.scores.all)
    assert f"Highest All: {best.name} ," in text_of(top)
    assert top.index("Highest All") < top.index("<svg")
    assert html.count("<svg") == 3, "scores, errors and training have one each"


@pytest.mark.parametrize(("selector", "title"), [("own", "own labels alone"), ("none", "no selection")])
def test_caption_names_the_baseline(selector, title):
    text = text_of(shown("verdict", fake_run("a"), fake_run("b", selector=selector)))
    assert f"runs with {title} are orange." in text


def test_no_change_is_claimed_without_a_baseline():
    assert page_of(fake_run("a"), fake_run("b", seed=1)).changes() is None
    assert "cannot show whether it is more than chance" in shown("verdict", fake_run("a"), fake_run("b", seed=1))
    assert "justright review" in shown("verdict", fake_run("a", accuracy=None), fake_run("b", accuracy=None))
    assert page_of(fake_run("a", accuracy=None), fake_run("b", accuracy=None)).scores() is None


def test_comparison_without_truth_has_no_empty_part(tmp_path):
    runs = [make_run(tmp_path / name, per_class=6, n_wrong=n) for name, n in (("one", 5), ("other", 25))]
    for run in runs:
        for name in ("scores.json", "truth.parquet", "weights.parquet", "weights.classes.parquet", "metrics.jsonl"):
            (run.path / name).unlink()
    comparison = Comparison.of([type(run).open(run.path) for run in runs])
    html = ComparisonPage(comparison).html()
    check(html)
    titles = ["Agreement", "Number of categories", "Settings", "Timings"]
    assert re.findall(r"<h2>(.*?)</h2>", html) == titles
    assert "cannot show whether it is more than chance" not in html
    [pair] = comparison.agreement.pairs
    assert str(pair) in text_of(html.partition("<nav")[0])
    n_different = int((~pair.is_same).sum())
    assert f"{n_different} images are not in matching categories" in text_of(html)
    assert "Without scores" not in html
    assert comparison.to_json()["agreement"] == [pair.to_json()]
