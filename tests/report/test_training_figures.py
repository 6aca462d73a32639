from __future__ import annotations

import math

from justright.evaluation.figures import to_svg
from justright.report.training_figures import draw_training, reported


def test_every_number_is_reported_and_the_loss_comes_first():
    records = [{"epoch": 0, "entropy": 1.0, "loss": 2.0, "note": "text", "is_last": True}, {"epoch": 1, "more": 3}]
    assert reported(records) == ["loss", "entropy", "more"]


def test_lines_go_through_the_records():
    records = [{"epoch": e, "loss": 2.0**-e, "seconds": 1.0} for e in range(3)]
    (axes,) = [axes for axes in draw_training({"a": records}).axes if axes.get_visible()]
    assert axes.lines[0].get_xdata().tolist() == [0, 1, 2]
    assert axes.lines[0].get_ydata().tolist() == [1.0, 0.5, 0.25]


def test_runs_lie_over_each_other_and_odd_values_do_no_harm():
    records = {"$a$": [{"epoch": 0, "loss": math.nan}], "<b>": [{"epoch": 0, "loss": 1.0, "extra": 2.0}], "empty": []}
    svg = to_svg(draw_training(records))
    assert "$a$" in svg
    assert "&lt;b&gt;" in svg
