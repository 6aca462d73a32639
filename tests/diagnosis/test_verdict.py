from __future__ import annotations

import numpy as np
import pytest

from justright.diagnosis.verdict import COLUMNS, OWN, Diagnosis, DrawScores, difference


def outcomes_of(**by_setting) -> dict[str, list[DrawScores]]:
    return {name: [DrawScores(value, value, 0.5) for value in values] for name, values in by_setting.items()}


def test_everything_is_taken_unless_another_is_ahead_in_nearly_all_draws():
    everything = [0.5] * 8
    luck = outcomes_of(own=[0.4] * 8, none=everything, bins=[0.9] * 6 + [0.4] * 2)
    found = Diagnosis.of(luck, 0.2, 10, 5)
    assert found.rows[0].name == "bins"
    assert found.winner == "none"
    assert "no other is clearly ahead, bins in 6 of 8 draws" in found.verdict
    clear = outcomes_of(own=[0.4] * 8, none=everything, bins=[0.6] * 7 + [0.4], beta=[0.55] * 8)
    assert Diagnosis.of(clear, 0.2, 10, 5).winner == "bins"
    harmful = outcomes_of(own=[0.6] * 8, none=everything, bins=[0.55] * 8)
    assert Diagnosis.of(harmful, 0.2, 10, 5).winner == OWN


def test_a_setting_that_selects_nothing_is_named_and_cannot_win():
    outcomes = {OWN: [DrawScores(0.5, 0.5, 0.0)] * 4, "mute": [None] * 4}
    found = Diagnosis.of(outcomes, 0.2, 10, 5)
    assert found.unanswered == ("mute",)
    assert found.verdict == "Take own (no pool): no other setting had an answer."
    assert "mute" in found.how()


def test_the_interval_is_that_of_student_widened_by_the_overlap():
    values = np.array([0.1, 0.2, 0.3, 0.2])
    plain, wide = difference(values, 0.0, 0.95), difference(values, 0.25, 0.95)
    half = 3.182446 * values.std(ddof=1) / 2  # the 97.5 % quantile of t with 3 degrees of freedom
    assert (plain.low, plain.high) == pytest.approx((0.2 - half, 0.2 + half), abs=1e-6)
    assert wide.high - wide.low == pytest.approx(np.sqrt(2) * 2 * half, abs=1e-6)


def test_each_row_has_a_cell_for_each_column_and_own_labels_are_not_compared_with_themselves():
    found = Diagnosis.of(outcomes_of(own=[0.4, 0.5], none=[0.6, 0.6]), 0.2, 10, 5)
    best, own = found.cells()
    assert {len(best), len(own)} == {len(COLUMNS)}
    assert best[:3] == ("none", "60.0", "60.0")
    assert best[5] == "2 of 2"
    assert own[3:6] == ("", "", "")
    assert "5 of your 10 labeled classes" in found.how()
