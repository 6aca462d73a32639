from __future__ import annotations

import json
import logging
from dataclasses import dataclass

import numpy as np
import pytest

from justright.selection import ClassWeights, Selector, UniformSelector
from justright.selection.diagnosis import diagnose, standard_settings
from justright.selection.verdict import OWN
from justright.utils.errors import DegenerateError


def signal_and_noise(n_own=12, n_pool=20, per=10, dim=24, seed=0):
    """Classes that differ in four directions only, among loud directions that tell nothing.

    The first half of the classes of the pool is like that too. In the other half those four directions are the loud
    ones that tell nothing, and the others tell everything.
    """
    rng = np.random.default_rng(seed)
    loud = np.where(np.arange(dim) < 4, 0.25, 1.0)

    def drawn(centers, labels):
        misleads = (labels >= 2 * n_own + n_pool // 2)[:, None]
        scale = np.where(misleads, np.where(np.arange(dim) < 4, 3.0, 0.05), loud)
        return centers[labels] + scale * rng.normal(size=(len(labels), dim)) + 3.0

    centers = np.zeros((2 * n_own + n_pool, dim))
    centers[: 2 * n_own, :4] = rng.normal(size=(2 * n_own, 4))
    centers[2 * n_own : 2 * n_own + n_pool // 2, :4] = rng.normal(size=(n_pool // 2, 4))
    centers[2 * n_own + n_pool // 2 :, 4:] = 2 * rng.normal(size=(n_pool - n_pool // 2, dim - 4))
    own, pool = np.repeat(np.arange(n_own), per), np.repeat(np.arange(2 * n_own, 2 * n_own + n_pool), per)
    target = np.repeat(np.arange(2 * n_own), per)
    return (drawn(centers, own), own), (drawn(centers, pool), pool), drawn(centers, target), 2 * n_own


@dataclass(repr=False, eq=False)
class KeepOf(Selector):
    """Knows what nobody knows: which classes teach and which mislead."""

    low: int = 0
    high: int = 0

    def _weigh(self, pool, target):
        classes = pool.classes()
        is_kept = (classes >= self.low) & (classes < self.high)
        return ClassWeights(classes, is_kept.astype(float), ["told"] * len(classes))


TEACHING, MISLEADING = KeepOf(24, 34), KeepOf(34, 44)


def test_the_planted_winner_is_found():
    found = diagnose(*signal_and_noise(), {"misleading": MISLEADING, "teaching": TEACHING}, n_draws=4)
    assert found.winner == "teaching"
    assert found.verdict.startswith("Take teaching: ")
    assert "ahead of own (no pool) in 4 of 4 draws" in found.verdict
    rows = {row.name: row for row in found.rows}
    assert rows["teaching"].all > rows[OWN].all > rows["misleading"].all
    assert rows["teaching"].kept == 0.5
    assert [row.name for row in found.rows] == ["teaching", OWN, "misleading"]


def test_where_every_selection_misleads_the_answer_is_no_pool():
    found = diagnose(*signal_and_noise(), {"misleading": MISLEADING}, n_draws=4)
    assert found.winner == OWN
    assert found.verdict.startswith("Take own")


def test_same_seed_same_result_and_the_standard_settings_are_all_there(caplog):
    data = signal_and_noise(n_own=6, per=6)
    one, two = (diagnose(*data, n_draws=2, seed=3) for _ in range(2))
    assert one == two
    assert {row.name for row in one.rows} | set(one.unanswered) == set(standard_settings(12))
    assert json.loads(json.dumps(one.to_json()))["n_draws"] == 2
    assert diagnose(*data, n_draws=2, seed=4) != one
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "replace a trained network" in one.caveat


def test_labels_of_pool_and_own_may_be_the_same_numbers():
    own, pool, target, k = signal_and_noise()
    renamed = (pool[0], pool[1] - pool[1].min())
    one = diagnose(own, pool, target, k, {"everything": UniformSelector()}, n_draws=2)
    assert one == diagnose(own, renamed, target, k, {"everything": UniformSelector()}, n_draws=2)


def test_what_is_too_small_for_it_is_told():
    own, pool, target, k = signal_and_noise(n_own=3)
    with pytest.raises(DegenerateError, match="3 own classes"):
        diagnose(own, pool, target, k)
    with pytest.raises(DegenerateError, match="1 draws"):
        diagnose(*signal_and_noise(), n_draws=1)
