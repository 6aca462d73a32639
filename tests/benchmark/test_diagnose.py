from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from justright.benchmark.diagnose import diagnose, standard_settings, with_setting
from justright.benchmark.diagnosis import NONE, Diagnosis, Outcome, difference
from justright.benchmark.pseudo_problem import problem_source
from justright.errors import DegenerateError
from justright.selection import BinsSelector, CuiSelector, UniformSelector


def ring(n=12, per=20, n_confusing=60, seed=0):
    """Classes on a ring, where the target lies too, and between each two of them a class that pulls at both."""
    rng = np.random.default_rng(seed)
    angle = np.pi * np.arange(2 * n) / n
    angle = np.concatenate([angle[::2], angle[1::2]])
    centers = np.stack([np.cos(angle), np.sin(angle), np.full(2 * n, 0.5)], axis=1)
    labels = np.repeat(np.arange(2 * n), [per] * n + [n_confusing] * n)
    spread = np.where(labels < n, 0.1, 0.02)[:, None]
    pool = centers[labels] + spread * rng.normal(size=(len(labels), 3))
    target = centers[np.repeat(np.arange(n), 20)] + rng.normal(0, 0.02, (n * 20, 3))
    return pool, labels, target


def apart(n=12, per=10, dim=16, seed=0):
    """Classes so far apart that no label can confuse them."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n, dim))
    labels = np.repeat(np.arange(n), per)
    pool = centers[labels] + rng.normal(0, 0.05, (len(labels), dim))
    return pool, labels, pool[::3] + 0.01


class DropFrom(UniformSelector):
    """Knows what nobody knows: from which label on classes only confuse."""

    def __init__(self, label: int = 0):
        self.label = label

    def fit(self, pool_features, pool_labels, target_features) -> DropFrom:
        super().fit(pool_features, pool_labels, target_features)
        self.class_weight_ = (self.classes_ < self.label).astype(float)
        return self


def test_the_planted_winner_is_found():
    settings = {"oracle": DropFrom(12), "bins": BinsSelector(), "cui": CuiSelector()}
    found = diagnose(*ring(), settings, n_draws=6)
    assert found.winner == "oracle"
    assert found.verdict.startswith("oracle wins: New +")
    rows = {row.name: row for row in found.rows}
    assert rows["oracle"].new_difference.low > 0.1
    assert rows["oracle"].n_better == 6
    assert rows["bins"].new > rows["cui"].new, "what confuses here is near, and cui keeps the near"


def test_without_a_difference_the_answer_is_to_use_everything():
    found = diagnose(*apart(), {"cui": CuiSelector(), "oracle": DropFrom(20)}, n_draws=4)
    assert found.winner == NONE
    assert found.verdict.startswith("Use everything")


def test_a_worse_setting_does_not_win():
    outcomes = {NONE: [Outcome(0.8, 0.8, 1.0)] * 5, "bad": [Outcome(0.5, 0.7, 0.5), *[Outcome(0.6, 0.7, 0.5)] * 4]}
    assert Diagnosis.of(outcomes, 0.2, 10, 2, "frozen").winner == NONE


def test_same_seed_same_result():
    settings = {"bins": BinsSelector()}
    one, two = (diagnose(*ring(), settings, n_draws=2, seed=3) for _ in range(2))
    assert one == two
    assert json.loads(json.dumps(one.to_json()))["n_draws"] == 2
    assert diagnose(*ring(), settings, n_draws=2, seed=4) != one


def test_soft_weights_count_in_the_linear_space(caplog):
    pool, labels, target = apart()
    found = diagnose(pool, labels, target, n_draws=2, space="linear")
    assert {row.name for row in found.rows} | set(found.unanswered) == set(standard_settings("linear"))
    assert "stand in" in found.caveat
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_setting_without_answers_is_named_and_cannot_win():
    outcomes = {NONE: [Outcome(0.5, 0.5, 1.0)] * 4, "mute": [None, None, None, Outcome(1.0, 1.0, 0.1)]}
    found = Diagnosis.of(outcomes, 0.2, 10, 2, "frozen")
    assert found.unanswered == ("mute",)
    assert found.verdict == "Use everything: no other setting had an answer."
    assert "mute" in found.how()


def test_the_interval_is_that_of_student_widened_by_the_overlap():
    values = np.array([0.1, 0.2, 0.3, 0.2])
    plain, wide = difference(values, 0.0, 0.95), difference(values, 0.25, 0.95)
    half = 3.182446 * values.std(ddof=1) / 2  # the 97.5 % quantile of t with 3 degrees of freedom
    assert (plain.low, plain.high) == pytest.approx((0.2 - half, 0.2 + half), abs=1e-6)
    assert wide.high - wide.low == pytest.approx(np.sqrt(2) * 2 * half, abs=1e-6)


def test_a_problem_shows_half_of_its_old_classes_and_none_of_its_new_ones():
    pool, labels, target = ring()
    source = problem_source(pool, labels, target, seed=0)
    assert set(source.candidates.tolist()) == set(range(12)), "the classes that look like the target"
    problem = source.draw(1)
    new, old = np.unique(problem.truth[~problem.is_old]), np.unique(problem.truth[problem.is_old])
    assert len(new) == len(old) == source.n_new == 4
    assert not np.isin(new, problem.pool_labels).any()
    for label in old:
        assert (problem.truth == label).sum() == (problem.pool_labels == label).sum() == 10
    assert len(problem.pool) + len(problem.target) == len(source.labels)


def test_a_pool_too_small_for_it_is_told():
    pool, labels, target = apart(n=5)
    with pytest.raises(DegenerateError, match="5 classes"):
        diagnose(pool, labels, target)
    with pytest.raises(DegenerateError, match="1 draws"):
        diagnose(*apart(), n_draws=1)


def test_what_was_asked_is_added_only_if_it_is_new():
    settings = standard_settings()
    assert with_setting(settings, "asked", BinsSelector(n_clusters=7, seed=3)) == settings
    assert "asked" in with_setting(settings, "asked", BinsSelector(n_bins=3))
