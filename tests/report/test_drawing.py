from __future__ import annotations

from matplotlib.figure import Figure

from justright.report.drawing import COLORS, OTHERS, color_of, in_page


def test_after_the_last_color_all_share_one():
    assert color_of(0) == COLORS[0]
    assert color_of(99) == OTHERS


def test_a_figure_takes_the_colors_of_the_page_and_any_script():
    figure = Figure()
    figure.subplots().set_title("鳥 & <b>")
    html = in_page(figure, "one", "what < it shows")
    assert "#000000" not in html
    assert "鳥 &amp; &lt;b&gt;" in html
    assert 'aria-label="what &lt; it shows"' in html
