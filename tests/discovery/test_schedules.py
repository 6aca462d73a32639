from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st

from justright.discovery.loop import learning_rate, n_epochs_with, teacher_momentum, teacher_temperature


@pytest.mark.parametrize(
    ("epoch", "rate"),
    [
        (0, 0.1),
        (50, 0.0001 + 0.0999 * (1 + math.sqrt(0.5)) / 2),
        (100, 0.05005),
        (200, 0.0001),
        (250, 0.0001),
    ],
)
def test_learning_rates_match_hand_computed_values(epoch, rate):
    assert learning_rate(epoch, 200, 0.1, 1e-3) == pytest.approx(rate, rel=1e-12)


def test_steady_rate_precedes_the_same_decay():
    rates = [learning_rate(epoch, 30, 0.1, 1e-3, n_steady=10) for epoch in range(30)]
    assert rates[:10] == [0.1] * 10
    assert rates[10:] == [learning_rate(epoch, 20, 0.1, 1e-3) for epoch in range(20)]


@pytest.mark.parametrize(
    ("n_steady", "n_planned", "share", "expected"),
    [(6, 50, 0.6, 10), (7, 50, 0.6, 12), (1, 50, 0.9, 2), (1, 2, 0.6, 2)],
)
def test_early_stop_shortens_the_decay_in_proportion(n_steady, n_planned, share, expected):
    assert n_epochs_with(n_steady, n_planned, share) == expected


@given(st.integers(2, 400), st.floats(0.01, 0.99), st.floats(0, 1))
@example(30, 0.7, 1.0)  # 21 / 0.7 is a little more than 30
def test_early_stop_happens_once_and_never_lengthens(n_planned, share, place):
    most = int(share * n_planned)
    assume(most)
    n_steady = max(1, round(place * most))
    found = n_epochs_with(n_steady, n_planned, share)
    assert n_steady < found <= n_planned
    assert int(share * found) <= n_steady


def test_learning_rate_matches_torch():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.3 * 1e-3)
    for epoch in range(20):
        assert learning_rate(epoch, 20, base=0.3, floor_share=1e-3) == pytest.approx(
            scheduler.get_last_lr()[0], rel=1e-9
        )
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize(
    ("epoch", "temperature"),
    [(0, 0.07), (1, 0.07 - 0.03 / 29), (14, 0.07 - 0.03 * 14 / 29), (29, 0.04), (30, 0.04), (199, 0.04)],
)
def test_teacher_temperatures_match_hand_computed_values(epoch, temperature):
    assert teacher_temperature(epoch, 0.07, 0.04, 30) == pytest.approx(temperature, rel=1e-12)


@pytest.mark.parametrize("n_warmup", [0, 1])
def test_no_warmup_starts_at_the_last_temperature(n_warmup):
    assert teacher_temperature(0, 0.07, 0.04, n_warmup) == 0.04


@pytest.mark.parametrize(
    ("epoch", "momentum"), [(0, 0.699), (100, 0.849), (200, 0.999), (50, 0.999 - 0.15 * (1 + math.sqrt(0.5)))]
)
def test_teacher_momenta_match_hand_computed_values(epoch, momentum):
    assert teacher_momentum(epoch, 200, 0.7, 0.999) == pytest.approx(momentum, rel=1e-12)


def test_schedules_use_their_arguments():
    assert learning_rate(5, 5, base=1.0, floor_share=0.25) == pytest.approx(0.25)
    assert teacher_temperature(1, first=1.0, last=0.5, n_warmup=3) == pytest.approx(0.75)
    assert teacher_momentum(0, 5, base=0.5, last=1.0) == pytest.approx(0.5)
