from __future__ import annotations

import numpy as np
import pytest
from tests.review import acting

from justright.evaluation import estimate_accuracy, forecast_checks
from justright.review.random_checks import (
    N_STRATA,
    accuracy,
    accuracy_in_words,
    checked_images,
    draw_order,
    n_checks_needed,
)
from justright.review.state import ConflictError


def check(opened, is_right, by="anna"):
    """Judge the next image and return its row."""
    return acting.check(opened, is_right, by).line.action.row


def test_the_estimate_is_that_of_the_random_checks(opened):
    assert accuracy(opened.state, opened.predictions.confidence) is None
    verdicts = [n % 3 > 0 for n in range(30)]
    rows = [check(opened, is_right) for is_right in verdicts]
    found = accuracy(opened.state, opened.predictions.confidence)
    assert found == estimate_accuracy(
        np.sort(rows),
        np.array(verdicts)[np.argsort(rows)],
        len(opened.predictions),
        confidence=opened.predictions.confidence.astype(np.float64),
    )


def test_only_the_image_that_was_drawn_can_be_checked(opened, say):
    row = opened.next_check("anna")
    other = next(r for r in range(len(opened.predictions)) if r != row)
    with pytest.raises(ConflictError, match="not the next image"):
        say(opened, "check", round=1, row=other, cluster=int(opened.state.group[other]), is_right=True)


def test_every_reviewer_judges_the_same_images(opened):
    first = [check(opened, True) for _ in range(4)]
    assert [check(opened, True, by="ben") for _ in range(4)] == first


def test_a_tie_between_reviewers_counts_as_wrong(opened):
    row = check(opened, True)
    check(opened, False, by="ben")
    assert checked_images(opened.state, 1) == {row: False}
    check(opened, True, by="cleo")
    assert checked_images(opened.state, 1) == {row: True}


def test_corrections_keep_the_round_of_checks(opened, say):
    rows = [check(opened, False) for _ in range(3)]
    say(opened, "reject", cluster=int(opened.state.group[rows[0]]), rows=rows[:1])
    assert accuracy(opened.state, opened.predictions.confidence).accuracy == 0
    say(opened, "round", round=2)
    assert accuracy(opened.state, opened.predictions.confidence).n_checked == 3, (
        "until round 2 has a check, round 1 stands"
    )
    check(opened, True)
    found = accuracy(opened.state, opened.predictions.confidence)
    assert (found.accuracy, found.n_checked, found.n_images) == (1, 1, len(opened.predictions) - 1)


def test_rejected_images_are_not_drawn(opened, say):
    row = opened.next_check("anna")
    say(opened, "reject", cluster=int(opened.state.group[row]), rows=[row])
    assert opened.next_check("anna") != row


def drawn(n_images=100, seed=0, round_=1, n_given=0):
    confidence = np.random.default_rng(9).random(n_images)
    is_given = np.arange(n_images) < n_given
    return draw_order(confidence, is_given, seed, round_), confidence, is_given


def test_rounds_are_independent_and_reproducible():
    first, again, other = (drawn(round_=round_)[0].tolist() for round_ in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == list(range(100))


def strata_as_loops(confidence, is_given):
    """By row: which of N_STRATA equal parts an image is in, by confidence; None where the label was given."""
    candidates = sorted((row for row in range(len(confidence)) if not is_given[row]), key=lambda row: confidence[row])
    stratum = dict.fromkeys(range(len(confidence)))
    for place, row in enumerate(candidates):
        stratum[row] = place * N_STRATA // len(candidates)
    return stratum


@pytest.mark.parametrize("n_given", [0, 40])
def test_each_eight_images_in_turn_are_of_all_strata(n_given):
    order, confidence, is_given = drawn(n_images=n_given + 80, n_given=n_given)
    stratum = strata_as_loops(confidence, is_given)
    candidates = [stratum[row] for row in order.tolist() if not is_given[row]]
    assert all(sorted(candidates[at : at + N_STRATA]) == list(range(N_STRATA)) for at in range(0, 80, N_STRATA))


def test_every_image_is_equally_likely_to_be_drawn_first():
    count = np.zeros(40)
    for seed in range(2000):
        count[drawn(n_images=40, seed=seed)[0][:10]] += 1
    np.testing.assert_allclose(count / 2000, 0.25, atol=0.045)


@pytest.mark.parametrize("n_checked", [12, 60, 150])
@pytest.mark.parametrize("power", [1.0, 0.2, -1.0], ids=["calibrated", "overconfident", "inverted"])
def test_intervals_of_stratified_draws_cover_the_truth(n_checked, power):
    rng = np.random.default_rng(3)
    chance = rng.beta(0.7, 0.3, 1000)
    is_right = rng.random(1000) < chance
    confidence = np.clip(chance, 1e-3, 1) ** power if power > 0 else 1 - chance
    is_covered, errors = [], []
    for seed in range(200):
        rows = draw_order(confidence, np.zeros(1000, dtype=bool), seed, 1)[:n_checked]
        found = estimate_accuracy(rows, is_right[rows], 1000, confidence=confidence)
        is_covered.append(found.low <= is_right.mean() <= found.high)
        errors.append(found.accuracy - is_right.mean())
    assert np.mean(is_covered) >= 0.92
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(200) + 1e-3


def test_confidences_forecast_the_number_of_checks(opened):
    opened.predictions.is_given[:5] = True
    confidence = opened.predictions.confidence
    guess = n_checks_needed(opened.state, confidence)
    assert guess == forecast_checks(confidence[5:].astype(np.float64)) > 0
    assert f"About {guess} give the accuracy within ±4 points" in accuracy_in_words(opened.state, confidence)
    check(opened, True)
    assert accuracy_in_words(opened.state, confidence) == str(accuracy(opened.state, confidence))


def test_labeled_images_are_not_checked(opened):
    opened.state.is_given[:] = True
    opened.state.is_given[7] = False
    assert opened.next_check("anna") == 7
    check(opened, True)
    assert opened.next_check("anna") is None
