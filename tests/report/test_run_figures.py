from __future__ import annotations

import math

import pytest
from tests.report.fake_runs import fake_run

from justright.benchmark.summary import SettingRow
from justright.report.comparison import Comparison, draw_scores
from justright.report.drawing import to_svg
from justright.report.run_figures import draw_counts, draw_suite, draw_training, reported


def test_a_saved_estimate_is_drawn_with_its_k_and_interval(finished):
    estimates = finished.count["estimates"]
    (axes,) = draw_counts(estimates).axes
    assert axes.get_title(loc="left") == "labeled-search: K = 24"
    assert axes.lines[0].get_ydata().tolist() == [y for _, y in estimates["labeled-search"]["curve"]]
    assert axes.lines[1].get_xdata() == [24, 24]
    (band,) = axes.patches
    places = band.get_patch_transform().transform(band.get_path().vertices)[:, 0]
    assert (places.min(), places.max()) == (22, 27)


def test_every_number_is_reported_and_the_loss_comes_first():
    records = [{"epoch": 0, "entropy": 1.0, "loss": 2.0, "note": "text", "is_last": True}, {"epoch": 1, "more": 3}]
    assert reported(records) == ["loss", "entropy", "more"]


def test_lines_pass_through_the_records():
    records = [{"epoch": e, "loss": 2.0**-e, "seconds": 1.0} for e in range(3)]
    (axes,) = [axes for axes in draw_training({"a": records}).axes if axes.get_visible()]
    assert axes.lines[0].get_xdata().tolist() == [0, 1, 2]
    assert axes.lines[0].get_ydata().tolist() == [1.0, 0.5, 0.25]


def test_training_curves_overlap_and_tolerate_odd_values():
    records = {"$a$": [{"epoch": 0, "loss": math.nan}], "<b>": [{"epoch": 0, "loss": 1.0, "extra": 2.0}], "empty": []}
    svg = to_svg(draw_training(records))
    assert "$a$" in svg
    assert "&lt;b&gt;" in svg


def test_dots_are_at_the_scores_with_intervals():
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


def test_suite_dots_are_at_the_changes():
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
