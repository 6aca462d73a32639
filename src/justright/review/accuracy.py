"""How accurate the clusters are, from randomly drawn images that people called right or wrong.

Only the draw makes this an estimate: images that a reviewer picks are no sample. Every round has one random order,
the same for all reviewers, so that two of them judge the same images. Corrections do not change the checks of a
round; a new round draws afresh and says how accurate the corrected clusters are.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DegenerateError
from justright.evaluation import CheckedAccuracy, estimate_accuracy
from justright.review.actions import REJECTED
from justright.review.state import ReviewState
from justright.seeding import generator
from justright.types import Array


def draw_order(n_images: int, seed: int, round_: int) -> Int[Array, " images"]:
    """The random order in which the images of a round are looked at."""
    return generator(seed, "review check", round_).permutation(n_images)


def next_check(state: ReviewState, order: Int[Array, " images"], reviewer: str) -> int | None:
    """The first image of the order that this reviewer has not judged; None when all are judged."""
    done = {row for row, by in state.checks[state.round] if by == reviewer}
    for row in order.tolist():
        if row not in done and state.group[row] != REJECTED:
            return int(row)
    return None


def checked_images(state: ReviewState, round_: int) -> dict[int, bool]:
    """One verdict an image: right where more reviewers say right than wrong. A tie counts as wrong."""
    votes: Counter[int] = Counter()
    for (row, _), is_right in state.checks[round_].items():
        votes[row] += 1 if is_right else -1
    return {row: vote > 0 for row, vote in sorted(votes.items())}


def accuracy(state: ReviewState, confidence: Float[Array, " images"]) -> CheckedAccuracy | None:
    """The estimate of the latest round that has checks, over the images that nobody rejected. None without checks."""
    for round_ in range(state.round, 0, -1):
        verdicts = checked_images(state, round_)
        if verdicts:
            break
    else:
        return None
    checked = np.array(list(verdicts), dtype=np.int64)
    # an image that was rejected after its check stays: leaving it out would flatter
    is_in = state.group != REJECTED
    is_in[checked] = True
    place = np.cumsum(is_in) - 1
    try:
        return estimate_accuracy(
            place[checked],
            np.array(list(verdicts.values()), dtype=bool),
            int(is_in.sum()),
            confidence=confidence[is_in].astype(np.float64),
        )
    except DegenerateError:
        return None
