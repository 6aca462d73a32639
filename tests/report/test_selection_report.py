from __future__ import annotations

import re

import numpy as np
import pytest
from tests.report.html_checks import check

from justright.data import open_images
from justright.features.table import FeatureTable
from justright.report.elements import Missing
from justright.report.page_images import PageImages
from justright.report.selection_report import pool_images, selection_page, write_selection_report
from justright.runs.selection import Selection, merge_tables
from justright.selection import BetaSelector, UniformSelector, row_shards
from justright.selection.diagnosis import Diagnosis
from justright.utils.errors import JustrightError


@pytest.fixture
def result(make_tree, tmp_path):
    """A selection from five classes of images on disk."""
    images = open_images(make_tree(dict.fromkeys("abcde", 5), "pets"))
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(5, 8))[images.labels] + 0.1 * rng.normal(size=(25, 8)) + 0.5).astype(np.float32)
    columns = {name: images.table[name] for name in ("path", "dataset", "class_name", "source")}
    store = FeatureTable.of(features, label=images.labels, id=images.with_ids().ids, **columns).write(
        tmp_path / "pool.features"
    )
    pool = merge_tables([store])
    selector = BetaSelector(domain="affine").fit_stream(pool, row_shards(features[:5]))
    return Selection.of("beta", selector, pool)


def test_page_shows_images_of_every_class(result, tmp_path):
    _, problem = write_selection_report(result, {}, page=tmp_path / "page.html")
    checker = check((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert problem == ""
    assert len(checker.images) == len(result.pool.origins) == 5


def test_unreadable_images_are_counted(result, tmp_path):
    path = next(iter(pool_images(result.pool).readers.values())).root / pool_images(result.pool).paths[0]
    path.write_bytes(b"no image")
    _, problem = write_selection_report(result, {}, page=tmp_path / "page.html")
    assert path.name in problem
    assert "1 of 25 images could not be read" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_store_without_image_paths_raises(weighed):
    with pytest.raises(JustrightError, match="has no paths of its images"):
        pool_images(weighed("none", UniformSelector()).pool)


@pytest.fixture
def written(weighed, tmp_path):
    result = weighed("beta", BetaSelector(domain="affine"), n_resamples=3)
    request_values = {"pool": "<birds>", "target": "t"}
    diagnosis = Diagnosis.of(np.full(3, 0.5), np.full(3, 0.6), 10)
    files, problem = write_selection_report(
        result, request_values, diagnosis, tmp_path / "figures", tmp_path / "page.html"
    )
    return result, files, problem, (tmp_path / "page.html").read_text(encoding="utf-8")


def test_page_makes_no_network_requests(written):
    *_, html = written
    checker = check(html)
    assert all(address.startswith(("#", "data:")) for address in checker.addresses)
    assert not re.search(r"https?://", html)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttp", html)
    assert "default-src 'none'" in html


def test_page_is_complete_without_scripts(written):
    result, files, problem, html = written
    assert [file.name for file in files] == ["weights.svg", "page.html"]
    assert "has no paths of its images" in problem
    without = re.sub(r"<script>.*?</script>", "", html, flags=re.S)
    for name in ("birds/0", "&lt;pets&gt; &amp; co/3", "&lt;birds&gt;", result.summary(), "Take none"):
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


def test_page_without_images_or_diagnosis(weighed):
    result = weighed("none", UniformSelector())
    html = selection_page(result, {}, {}, PageImages(Missing("the disk is gone"), 0))
    check(html)
    assert "No images: the disk is gone" in html
    assert "Does the pool help" not in html


def test_figures_and_page_are_written_to_the_given_paths(weighed, tmp_path):
    result = weighed("beta", BetaSelector(domain="affine"))
    files, problem = write_selection_report(result, {"target": "photos"}, None, tmp_path / "drawn", tmp_path / "w.html")
    assert files == [tmp_path / "drawn" / "weights.svg", tmp_path / "w.html"]
    assert all(file.exists() for file in files)
    assert "photos" in files[1].read_text(encoding="utf-8")
    assert problem == "the feature store has no paths of its images"


@pytest.mark.parametrize("place", ["figures", "page"])
def test_only_requested_files_are_written(weighed, tmp_path, place):
    result = weighed("none", UniformSelector())
    files, _ = write_selection_report(result, {}, **{place: tmp_path / "here"})
    assert files == ([] if place == "figures" else [tmp_path / "here"])
