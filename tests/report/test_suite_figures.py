from __future__ import annotations

import pytest

from justright.benchmark.suite_table import SettingRow
from justright.report.suite_figures import draw_suite


def test_dots_lie_at_the_changes_and_the_baseline_has_no_line():
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
