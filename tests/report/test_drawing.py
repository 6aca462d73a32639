from __future__ import annotations

from unittest.mock import patch

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from justright.report.drawing import COLORS, OTHERS, add_legend, color_of, figure_with_axes, for_page, to_svg


def test_colors_beyond_the_palette_are_gray():
    assert color_of(0) == COLORS[0]
    assert color_of(99) == OTHERS


def test_a_figure_takes_the_colors_of_the_page_and_any_script():
    figure = Figure()
    figure.subplots().set_title("鳥 & <b>")
    html = for_page(figure, "one", 'what < it "shows"')
    assert html.startswith("<svg ")
    assert "#000000" not in html
    assert "鳥 &amp; &lt;b&gt;" in html
    assert 'aria-label="what &lt; it &#34;shows&#34;"' in html


def test_ids_of_two_figures_are_distinct():
    figure = Figure()
    figure.subplots()
    first, second = (for_page(to_svg(figure), name, "") for name in ("one", "two"))
    assert 'id="one-figure_1"' in first
    assert first.replace("one-", "two-") == second
    assert "xmlns" not in first
    assert "<metadata>" not in first


def two_panels():
    """A figure with pixels, a legend, one label of four, and a title above a power of ten."""
    figure, (left, right) = figure_with_axes(4.0, 2.0, (1, 2), dpi=150)
    left.scatter(*np.random.default_rng(0).normal(size=(2, 50)), rasterized=True)
    left.set(title="one", xlabel="across")
    (line,) = right.plot([1, 2], [1e-6, 2e-6])
    right.set_title("above the power of ten", loc="left")
    add_legend(figure, [line], ["a line"])
    return figure


def test_a_figure_is_drawn_once_and_as_it_would_be_saved(tmp_path):
    figure = two_panels()
    with patch.object(Axes, "draw", autospec=True, side_effect=Axes.draw) as draw:
        drawn = to_svg(figure)
    assert draw.call_count == 2, "once for each panel"
    assert figure.dpi == 150
    with matplotlib.rc_context({"svg.hashsalt": "justright", "svg.fonttype": "none"}):
        two_panels().savefig(tmp_path / "saved.svg", metadata={"Date": None})
    assert (tmp_path / "saved.svg").read_text(encoding="utf-8") == drawn
