from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.report.html_checks import check, opened, text_of

from justright.discovery.predictions import Category
from justright.evaluation import Counts, match_counts
from justright.report.notebook import confidence_bins, result_html
from justright.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def cell(finished):
    return result_html(finished)


def test_cell_shows_the_expected_accuracy(cell, finished):
    expected = finished.about["expected_right"]
    n = len(finished.predictions)
    assert f"We expect {expected['low']} to {expected['high']} of {n} images to be right" in text_of(cell)


def test_notebook_shows_the_largest_new_clusters(cell, finished):
    predictions = finished.predictions
    new = [number for number, each in enumerate(predictions.categories) if each.kind == "discovered"]
    sizes = sorted((int(predictions.sizes[number]) for number in new if predictions.sizes[number]), reverse=True)
    by_name = {predictions.categories[number].name: number for number in new}
    shown = re.findall(r"(new-\d+) (\d+) images?, expected purity (\d+) %", text_of(cell))
    assert [int(n) for _, n, _ in shown] == sizes[:12]
    for name, n, purity in shown:
        assert int(n) == predictions.sizes[by_name[name]]
        assert int(purity) == pytest.approx(100 * predictions.purity[by_name[name]], abs=0.51)
    assert cell.count("<img") == len(shown)


def test_cell_is_small_self_contained_and_needs_no_script(cell):
    assert len(cell.encode()) < 1_000_000
    assert all(address.startswith("data:image/") for address in check(cell).addresses)
    assert not re.search(r"<(script|style|link)", cell)


def test_bins_agree_with_a_loop_over_images(finished):
    predictions, truth = finished.predictions, finished.judged(finished.truth_file)
    class_of = match_counts(Counts.of(truth.y_true, truth.y_pred))
    matched = dict(zip(class_of.clusters.tolist(), class_of.classes.tolist(), strict=True))
    is_right = np.array([matched.get(k) == c for c, k in zip(truth.y_true, truth.y_pred, strict=True)])
    by_bin: dict[int, list[int]] = {}
    for row, confidence in enumerate(predictions.confidence.tolist()):
        by_bin.setdefault(min(int(confidence * 10), 9), []).append(row)
    bins = confidence_bins(predictions, is_right)
    assert len(bins) == len(by_bin)
    for (title, n, expected, observed), number in zip(bins, sorted(by_bin, reverse=True), strict=True):
        rows = by_bin[number]
        assert title == f"{10 * number} to {10 * number + 10} %"
        assert n == len(rows)
        assert expected == pytest.approx(sum(predictions.confidence[row] for row in rows) / n)
        assert observed == pytest.approx(sum(is_right[row] for row in rows) / n)


def test_images_labeled_before_the_run_are_in_no_bin(finished):
    predictions = finished.predictions
    is_given = np.arange(len(predictions)) % 2 == 0
    bins = confidence_bins(replace(predictions, is_given=is_given), None)
    assert sum(n for _, n, _, _ in bins) == np.sum(~is_given)


def test_observed_share_appears_only_where_truth_is_known(cell, bare_run):
    without = text_of(result_html(bare_run))
    assert "observed right" in text_of(cell)
    assert "expected right" in without
    assert "observed right" not in without


def test_uncalibrated_confidence_gives_no_purity(own_run):
    own_run.save_about(own_run.about | {"expected_right": None, "calibrated_on": "held-out labeled images"})
    text = text_of(result_html(RunFolder.open(own_run.path)))
    assert "not calibrated" in text
    assert "expected purity" not in text


def test_an_unfinished_run_shows_a_reason(own_run):
    about = {name: value for name, value in own_run.about.items() if name != "files"}
    (own_run.path / "run.json").write_text(json.dumps(about))
    (own_run.path / "predictions.parquet").unlink()
    assert "There are no predictions" in text_of(result_html(RunFolder(own_run.path)))


def test_names_are_escaped(finished):
    run = RunFolder(finished.path)
    categories = [replace(each, name="<script>alert(1)</script>&") for each in run.predictions.categories]
    assert isinstance(categories[0], Category)
    vars(run)["predictions"] = replace(run.predictions, categories=tuple(categories))
    html = result_html(run)
    check(html)
    assert "<script" not in html


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cell_is_readable_on_light_and_dark(cell, chromium, tmp_path, scheme):
    page = f'<meta charset=utf-8><meta name=color-scheme content="light dark">{cell}'
    seen = opened(chromium, page, tmp_path, color_scheme=scheme)
    colors = seen.page.evaluate(
        "[...document.querySelectorAll('p, td, th, figcaption')].map(each => getComputedStyle(each).color)"
    )
    assert set(colors) == {"rgb(0, 0, 0)" if scheme == "light" else "rgb(255, 255, 255)"}
    assert seen.problems == []
