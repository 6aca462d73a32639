from __future__ import annotations

import pytest

from justright.report.selection_report import write_selection_report
from justright.selection import BetaSelector, UniformSelector


def test_the_figure_and_the_page_are_written_where_they_are_asked_for(weighed, tmp_path):
    result = weighed("beta", BetaSelector(domain="affine"))
    files, problem = write_selection_report(result, {"target": "photos"}, None, tmp_path / "drawn", tmp_path / "w.html")
    assert files == [tmp_path / "drawn" / "weights.svg", tmp_path / "w.html"]
    assert all(file.exists() for file in files)
    assert "photos" in files[1].read_text(encoding="utf-8")
    assert problem == "the feature store does not say where its images are"


@pytest.mark.parametrize("place", ["figures", "page"])
def test_only_what_is_asked_for_is_written(weighed, tmp_path, place):
    result = weighed("none", UniformSelector())
    files, _ = write_selection_report(result, {}, **{place: tmp_path / "here"})
    assert files == ([] if place == "figures" else [tmp_path / "here"])
