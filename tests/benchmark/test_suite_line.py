from __future__ import annotations

import numpy as np
import pytest

from justright.benchmark.problems import problem_of
from justright.benchmark.results import _in_pool_categories, counts_of, probe, shown_value
from justright.benchmark.suite import SuiteProblem
from justright.discovery.predictions import Category
from justright.evaluation import break_down
from justright.evaluation.files import JudgedPredictions


def test_probe_separates_classes_but_not_noise():
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 4
    apart = np.eye(4)[labels] + 0.05 * rng.normal(size=(80, 4))
    assert probe(apart, labels) == 1.0
    assert probe(rng.normal(size=(80, 4)), labels) < 0.6


def test_counts_are_those_of_the_protocol():
    problem = problem_of(SuiteProblem("d", "glyphs:per_class=4,scripts=digits"))
    assert counts_of(problem) == {
        "labeled_images": 5 * 2, "labeled_classes": 5, "target_images": 40 - 10, "target_classes": 10,
    }  # fmt: skip


def test_new_images_in_a_pool_class_count_as_old():
    categories = [Category(name, "known") for name in ("a", "dots/1", "dots/2")]
    categories.append(Category("new-001", "discovered"))
    y_true, is_old = np.array([0, 0, 1, 1, 1, 1, 1]), np.array([True] * 2 + [False] * 5)
    y_pred = np.array([0, 0, 3, 3, 1, 2, 0])
    judged = JudgedPredictions(y_true, y_pred, is_old, None, {0: "a", 1: "b"})
    assert _in_pool_categories(categories, judged, break_down(y_true, y_pred, is_old)) == 2
    y_pred = np.array([0, 0, 1, 1, 1, 2, 0])  # dots/1 is matched to b, so only dots/2 is left
    judged = JudgedPredictions(y_true, y_pred, is_old, None, {0: "a", 1: "b"})
    assert _in_pool_categories(categories, judged, break_down(y_true, y_pred, is_old)) == 1


def test_error_columns_count_images_in_pool_classes_as_old():
    line = {"new": 0.5, "new_as_old": 0.1, "new_as_new": 0.4, "new_as_pool": 0.3}
    assert (shown_value(line, "new_as_old"), shown_value(line, "new_as_new")) == pytest.approx((0.4, 0.1))
    assert shown_value(line, "new") == 0.5
    assert shown_value(line, "old") is None
