from __future__ import annotations

import numpy as np

from justright.benchmark.suite import SuiteProblem
from justright.benchmark.suite_line import counts_of, probe
from justright.benchmark.suite_problem import problem_of


def test_a_probe_knows_classes_that_lie_apart_and_not_noise():
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
