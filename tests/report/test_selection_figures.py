from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from justright.features.table import FeatureTable
from justright.report.drawing import for_page, to_svg
from justright.report.selection_report import draw_selection
from justright.runs.selection import Selection, load_selection, save_selection
from justright.selection import SELECTORS, BetaSelector, BinsSelector, CuiSelector, UniformSelector

SETTINGS = {
    "soft": BetaSelector(domain="affine"),
    "hard": BetaSelector(domain="affine", threshold=1.0),
    "rank": BetaSelector(domain="rank", normalize="mean"),
    "minmax": BetaSelector(domain="minmax", normalize="max"),
    "image": BetaSelector(domain="affine", level="image", weight_range=(0.01, 1.0)),
    "bins": BinsSelector(n_clusters=5, discard=False),
    "discarding": BinsSelector(n_clusters=5, select=False, mass="uniform"),
    "majority": BinsSelector(n_clusters=5, combine="majority", discard=False),
    "cui": CuiSelector(n_clusters=5),
}


def name_of(setting):
    return next(name for name, kind in SELECTORS.items() if type(SETTINGS[setting]) is kind)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_selection_is_drawn_as_valid_xml(weighed, name):
    (svg,) = [to_svg(figure) for figure in draw_selection(weighed(name_of(name), SETTINGS[name])).values()]
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "birds" in svg
    assert "&lt;pets&gt; &amp; co" in svg
    inside = ET.fromstring(for_page(svg, "one", "What it shows"))
    assert inside.get("viewBox") is not None
    assert inside.get("width") is None
    ids = [each.get("id") for each in inside.iter() if each.get("id")]
    assert all(each.startswith("one-") for each in ids)
    text = ET.tostring(inside, encoding="unicode")
    assert "http" not in text
    assert "#333333" not in text, "ink has the color of the page"


def test_marks_lie_on_the_curve(weighed):
    selector = BetaSelector(domain="affine", normalize="max")
    figure = draw_selection(weighed("beta", selector))["weights"]
    (line,) = figure.axes[0].lines
    on_curve = np.interp(selector.class_similarity_, line.get_xdata(), line.get_ydata())
    assert on_curve == pytest.approx(selector.class_weight_, abs=1e-3)


def test_bins_show_threshold_and_names(weighed):
    svg = to_svg(draw_selection(weighed("bins", BinsSelector(n_clusters=5, select=False)))["ranked"])
    assert "threshold" in svg
    svg = to_svg(draw_selection(weighed("bins", BinsSelector(n_clusters=5, discard=False)))["ranked"])
    assert "threshold" not in svg
    assert "bin 2, kept" in svg


def test_no_selection_has_no_figure(weighed):
    assert draw_selection(weighed("none", UniformSelector())) == {}


@pytest.mark.parametrize("setting", SETTINGS)
def test_saved_selection_is_drawn_like_a_new_one(weighed, tmp_path, setting):
    result = weighed(name_of(setting), SETTINGS[setting])
    save_selection(tmp_path / "w.parquet", result, FeatureTable.of(np.ones((2, 8), dtype=np.float32)))
    drawn, again = draw_selection(result), draw_selection(load_selection(tmp_path / "w.parquet"))
    assert drawn.keys() == again.keys()
    assert [to_svg(figure) for figure in drawn.values()] == [to_svg(figure) for figure in again.values()]


def test_unknown_selector_is_ranked_from_its_file(weighed):
    for name, selector in (("bins", SETTINGS["bins"]), ("beta", SETTINGS["soft"]), ("none", UniformSelector())):
        result = weighed(name, selector)
        other = Selection(result.images, result.classes, result.about | {"selector": "magic"})
        assert list(draw_selection(other)) == ([] if name == "none" else ["ranked"])


def test_unknown_parameters_of_a_saved_selection_are_ignored(weighed):
    result = weighed("beta", SETTINGS["soft"])
    params = {name: value for name, value in result.about["params"].items() if name != "seed"} | {"new": 1}
    other = Selection(result.images, result.classes, result.about | {"params": params})
    assert to_svg(draw_selection(other)["weights"]) == to_svg(draw_selection(result)["weights"])
