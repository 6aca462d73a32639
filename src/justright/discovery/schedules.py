"""How long training lasts, and how rate, temperature and momentum move: pure functions of epochs, counted from 0."""

from __future__ import annotations

import math


def learning_rate(epoch: int, n_epochs: int, base: float, floor_share: float, n_steady: int = 0) -> float:
    """Half a cosine from the base rate down to a floor, one step per epoch, as in GCD, XCon and SimGCD.

    floor + (base - floor) (1 + cos(pi t / T)) / 2,     floor = floor_share * base

    With `n_steady` the base rate holds for so many epochs first, and t and T count the epochs after them.
    """
    floor = floor_share * base
    return floor + (base - floor) * _half_cosine(max(0, epoch - n_steady), n_epochs - n_steady)


def n_epochs_with(n_steady: int, n_planned: int, steady_share: float) -> int:
    """How many epochs there are where the steady ones end after `n_steady`: in the same proportion, at least one more.

    min(n_planned, ceil(n_steady / steady_share))
    """
    return min(n_planned, max(n_steady + 1, math.ceil(n_steady / steady_share)))


def teacher_temperature(epoch: int, first: float, last: float, n_warmup: int) -> float:
    """A straight line over the first n_warmup epochs, both ends included, then constant, as in SimGCD.

    first + (last - first) t / (n_warmup - 1)     for t < n_warmup

    A sharp teacher is worth following only once it knows something.
    """
    if epoch >= n_warmup - 1:
        return last
    return first + (last - first) * epoch / (n_warmup - 1)


def teacher_momentum(epoch: int, n_epochs: int, base: float, last: float) -> float:
    """Half a cosine up: the teacher follows quickly at first and hardly at the end, as in muGCD.

    last - (1 - base) (1 + cos(pi t / T)) / 2

    That starts at last - (1 - base), 0.699, and not at the base itself: the formula is muGCD's.
    """
    return last - (1 - base) * _half_cosine(epoch, n_epochs)


def _half_cosine(epoch: int, n_epochs: int) -> float:
    # Past the last epoch a cosine would come back up; training that goes on keeps the last value instead.
    return (1 + math.cos(math.pi * min(epoch / n_epochs, 1.0))) / 2
