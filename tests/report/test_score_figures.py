from __future__ import annotations

import pytest
from tests.report.fake_runs import fake_run

from justright.benchmark.suite_table import SettingRow
from justright.report.comparison import Comparison
from justright.report.score_figures import draw_scores, draw_suite


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


def test_dots_of_a_suite_lie_at_the_changes_and_the_baseline_has_no_line():
    rows = [
        SettingRow("own", 2, 2, 0.5, 0.5, 0.5, None, None, 0),
        SettingRow("$all$", 2, 2, 0.6, 0.5, 0.6, (0.1, 0.05, 0.15), (0.1, 0.0, 0.2), 2),
    ]
    figure = draw_suite(rows, {"own": [0.0, 0.0], "$all$": [0.08, 0.12]}, "own")
    _, interval, mean, dots = figure.axes[0].lines
    assert interval.get_xdata() == pytest.approx([5.0, 15.0])
    assert mean.get_xdata() == pytest.approx([10.0])
    assert dots.get_xdata() == pytest.approx([8.0, 12.0])
    assert len(figure.axes[0].get_yticklabels()) == 1
    assert figure.axes[0].get_yticklabels()[0].get_text() == "$all$"
