from __future__ import annotations

import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from justright.evaluation import Counts, break_down, matched_confusion
from justright.report.drawing import to_svg
from justright.report.run_figures import MOST_CELLS, draw_confusion, draw_errors


def drawn(n_classes: int = 6, n: int = 300, seed: int = 0):
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, n_classes, n)
    y_pred = np.where(rng.random(n) < 0.4, rng.integers(0, n_classes + 2, n), y_true)
    return y_true, y_pred, y_true < n_classes // 2


def text_of(svg: str) -> str:
    return " ".join(ET.fromstring(svg).itertext())


def test_bars_show_the_share_of_wrong_images():
    y_true, y_pred, is_old = drawn()
    errors = break_down(y_true, y_pred, is_old)
    kinds, n_new = errors.by_kind(), int((~is_old).sum())
    wrong = (kinds["new_as_old"] + kinds["new_as_new"]) / n_new
    left, right = draw_errors(errors).axes
    widths = [[bar.get_width() for bar in group] for group in left.containers]
    assert widths[0][0] == pytest.approx(kinds["new_as_old"] / n_new)
    assert widths[1][0] == pytest.approx(kinds["new_as_new"] / n_new)
    assert sum(group[0].get_width() for group in right.containers) == pytest.approx(wrong)
    assert f"{100 * wrong:.1f} %" in text_of(to_svg(draw_errors(errors)))


def test_errors_of_several_runs_are_rows():
    runs = {"Similar": break_down(*drawn(seed=1)), "$ome_{name}": break_down(*drawn(seed=2))}
    text = text_of(to_svg(draw_errors(runs)))
    assert "Similar" in text
    assert "$ome_{name}" in text


def test_errors_are_drawn_without_wrong_images_or_old_classes():
    y_true = np.arange(5)
    assert "0.0 %" in text_of(to_svg(draw_errors(break_down(y_true, y_true, y_true < 0))))
    confusion = matched_confusion(Counts.of(y_true, y_true), np.array([], dtype=int))
    assert "Old" not in text_of(to_svg(draw_confusion(confusion)))


def test_the_confusion_names_few_classes_and_blocks_many():
    y_true, y_pred, _ = drawn()
    named = draw_confusion(matched_confusion(Counts.of(y_true, y_pred), np.arange(3)), {0: "a $5 bill", 1: "x" * 99})
    assert "a $5 bill" in text_of(to_svg(named))
    assert "x" * 40 not in text_of(to_svg(named))
    y_true, y_pred, _ = drawn(n_classes=MOST_CELLS + 50, n=3000)
    large = draw_confusion(matched_confusion(Counts.of(y_true, y_pred), np.arange(100)))
    assert "blocks of 2" in text_of(to_svg(large))
    assert max(large.axes[0].images[0].get_array().shape) <= MOST_CELLS


def test_figures_are_deterministic_and_need_no_pyplot():
    first, second = (to_svg(draw_errors(break_down(*drawn()))) for _ in range(2))
    assert first == second
    assert "matplotlib.pyplot" not in sys.modules


def test_names_in_any_script_cause_no_warning():
    y_true, y_pred, is_old = drawn()
    assert "鳥" in text_of(to_svg(draw_errors({"鳥": break_down(y_true, y_pred, is_old)})))
