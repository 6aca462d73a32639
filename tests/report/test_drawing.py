from __future__ import annotations

from matplotlib.figure import Figure

from justright.report.drawing import COLORS, OTHERS, color_of, for_page, to_svg


def test_after_the_last_color_all_share_one():
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


def test_ids_of_two_figures_do_not_meet_and_a_document_is_taken_as_it_is():
    figure = Figure()
    figure.subplots()
    first, second = (for_page(to_svg(figure), name, "") for name in ("one", "two"))
    assert 'id="one-figure_1"' in first
    assert first.replace("one-", "two-") == second
    assert "xmlns" not in first
    assert "<metadata>" not in first
