from __future__ import annotations

import pytest

from justright.runs.k_check import k_note

ESTIMATE = {"n_categories": 40, "interval": [33, 51]}


@pytest.mark.parametrize("given", [33, 40, 51])
def test_nothing_is_said_of_a_k_inside_the_interval(given):
    assert k_note(given, ESTIMATE) is None


@pytest.mark.parametrize(("given", "side", "cost"), [(32, "small", "share clusters"), (52, "large", "are split")])
def test_a_k_outside_of_it_is_doubted_with_the_estimate_and_what_it_costs(given, side, cost):
    said = k_note(given, ESTIMATE)
    assert f"--k {given} looks too {side}" in said
    assert "40 categories (33 to 51)" in said
    assert f"categories {cost}" in said


def test_an_estimate_without_an_interval_doubts_nothing():
    assert k_note(2, ESTIMATE | {"interval": None}) is None
