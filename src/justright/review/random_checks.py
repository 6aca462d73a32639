"""Estimate the accuracy of the clusters from randomly drawn images that reviewers judge right or wrong.

Only random images give an estimate: those that a reviewer picks are no sample. Every round has one random order, the
same for all reviewers, so that several judge the same images. The first n of it are spread evenly over low and high
confidences. Corrections do not change the checks of a round; a new round estimates the corrected clusters.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from justright.evaluation import HALF_WIDTH, CheckedAccuracy, estimate_accuracy, forecast_checks
from justright.review.actions import Action, Cluster, Row
from justright.review.state import REJECTED, Change, ConflictError, ReviewState, edit
from justright.utils.seeding import generator
from justright.utils.types import Array, Mask

if TYPE_CHECKING:
    from justright.review.open_review import OpenReview

N_STRATA = 8


class Check(Action, do="check"):
    """Judge a randomly drawn image: whether it is in the right cluster."""

    round: int = Field(ge=1, lt=2**31)
    row: Row
    cluster: Cluster
    is_right: bool

    def resolve(self, opened: OpenReview, by: str) -> Action:
        if self.row != opened.next_check(by):
            raise ConflictError("this is not the next image to check", advice="only images drawn at random count")
        return self

    def plan(self, state: ReviewState, by: str) -> Change:
        if self.round != state.round:
            raise ConflictError(f"round {self.round} of the checks has ended")
        state.rows_in(self.cluster, [self.row])
        return Change(edits=(edit(state.checks[self.round], (self.row, by), self.is_right),))

    def describe(self, state: ReviewState) -> str:
        return f"judged an image of {state.name_of(self.cluster)} {'right' if self.is_right else 'wrong'}"


class NewRound(Action, do="round", history="started round {round} of the checks"):
    """Draw a new random sample, to estimate the accuracy after corrections."""

    round: int = Field(ge=2, lt=2**31)

    def plan(self, state: ReviewState, by: str) -> Change:
        if self.round != state.round + 1:
            raise ConflictError(f"round {state.round} was already started")
        return Change(edits=(edit(state.rounds, "now", self.round),))


def draw_order(confidence: Float[Array, " images"], is_given: Mask, seed: int, round_: int) -> Int[Array, " images"]:
    """The random order of the images of a round, stratified by confidence.

    Every N_STRATA consecutive images contain one of each of N_STRATA equal strata. Images that were labeled before the
    run come in a stratum of their own, and are not checked.
    """
    by_confidence = np.lexsort((confidence, is_given))
    n_open = int((~is_given).sum())
    stratum = np.full(len(confidence), N_STRATA)
    stratum[by_confidence[:n_open]] = np.arange(n_open) * N_STRATA // max(n_open, 1)
    order = generator(seed, "review check", round_).permutation(len(confidence))
    by_stratum = np.argsort(stratum[order], kind="stable")
    size = np.bincount(stratum, minlength=N_STRATA + 1)
    turn = np.empty(len(order), dtype=np.int64)  # position within its stratum
    turn[by_stratum] = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size)
    return order[np.argsort(turn, kind="stable")]


def checked_images(state: ReviewState, round_: int) -> dict[int, bool]:
    """One verdict per image by majority of the reviewers. A tie counts as wrong."""
    votes: Counter[int] = Counter()
    for (row, _), is_right in state.checks[round_].items():
        votes[row] += 1 if is_right else -1
    return {row: vote > 0 for row, vote in sorted(votes.items())}


def accuracy(state: ReviewState, confidence: Float[Array, " images"]) -> CheckedAccuracy | None:
    """Estimate the accuracy from the latest round with checks, over images that nobody rejected. None without checks.

    Images labeled before the run are excluded. The interval ignores the strata, so it is conservative.
    """
    rounds = [round_ for round_, checks in state.checks.items() if checks and round_ <= state.round]
    if not rounds:
        return None
    verdicts = checked_images(state, max(rounds))
    checked = np.array(list(verdicts), dtype=np.int64)
    # images rejected after their check are kept: excluding them would bias the estimate upward
    is_in = (state.group != REJECTED) & ~state.is_given
    is_in[checked] = True
    place = np.cumsum(is_in) - 1
    is_right = np.array(list(verdicts.values()), dtype=bool)
    return estimate_accuracy(
        place[checked], is_right, int(is_in.sum()), confidence=confidence[is_in].astype(np.float64)
    )


def n_checks_needed(state: ReviewState, confidence: Float[Array, " images"]) -> int:
    """Expected number of checks for an interval of +-HALF_WIDTH before the first check, from the confidences."""
    is_candidate = (state.group != REJECTED) & ~state.is_given
    return forecast_checks(confidence[is_candidate].astype(np.float64))


def accuracy_in_words(state: ReviewState, confidence: Float[Array, " images"]) -> str:
    """The estimate in a sentence, or the number of checks it takes."""
    if estimate := accuracy(state, confidence):
        return str(estimate)
    n = n_checks_needed(state, confidence)
    return f"No random checks yet. About {n:,} give the accuracy within ±{100 * HALF_WIDTH:.0f} points."
