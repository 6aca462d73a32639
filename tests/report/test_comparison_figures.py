from __future__ import annotations

import pytest
from tests.report.fake_runs import fake_run

from justright.report.comparison import Comparison
from justright.report.comparison_figures import draw_scores


def test_dots_lie_at_the_scores_with_their_intervals():
    runs = (
        fake_run("$a$", accuracy=0.6),
        fake_run("b", selector="none", accuracy=0.5),
        fake_run("no scores", accuracy=None),
    )
    figure = draw_scores(Comparison(runs))
    for axes in figure.axes:
        interval, dot, *_ = axes.lines
        assert interval.get_xdata() == pytest.approx([55.0, 65.0])
        assert dot.get_xdata() == pytest.approx([60.0])
        assert len({line.get_color() for line in axes.lines}) == 2, "no selection has its own color"
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["$a$", "b"]
