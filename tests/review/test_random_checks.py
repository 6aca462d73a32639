from __future__ import annotations

import numpy as np
import pytest
from tests.review import acting

from justright.evaluation import estimate_accuracy
from justright.review.changes import ConflictError
from justright.review.random_checks import accuracy, checked_images, draw_order


def check(opened, is_right, by="anna"):
    """Judge the next image, and say which it was."""
    return acting.check(opened, is_right, by).line.action.row


def test_the_estimate_is_that_of_the_random_checks(opened):
    assert accuracy(opened.state, opened.lists.confidence) is None
    verdicts = [n % 3 > 0 for n in range(30)]
    rows = [check(opened, is_right) for is_right in verdicts]
    found = accuracy(opened.state, opened.lists.confidence)
    assert found == estimate_accuracy(
        np.sort(rows),
        np.array(verdicts)[np.argsort(rows)],
        len(opened.predictions),
        confidence=opened.lists.confidence.astype(np.float64),
    )


def test_only_the_image_that_was_drawn_can_be_checked(opened, say):
    row = opened.next_check("anna")
    other = next(r for r in range(len(opened.predictions)) if r != row)
    with pytest.raises(ConflictError, match="another image is next"):
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


def test_corrections_leave_the_round_as_it_was_and_a_new_round_draws_afresh(opened, say):
    rows = [check(opened, False) for _ in range(3)]
    say(opened, "reject", cluster=int(opened.state.group[rows[0]]), rows=rows[:1])
    assert accuracy(opened.state, opened.lists.confidence).accuracy == 0
    say(opened, "round", round=2)
    assert accuracy(opened.state, opened.lists.confidence).n_checked == 3, "until round 2 has a check, round 1 stands"
    check(opened, True)
    found = accuracy(opened.state, opened.lists.confidence)
    assert (found.accuracy, found.n_checked, found.n_images) == (1, 1, len(opened.predictions) - 1)


def test_rejected_images_are_not_drawn(opened, say):
    row = opened.next_check("anna")
    say(opened, "reject", cluster=int(opened.state.group[row]), rows=[row])
    assert opened.next_check("anna") != row


def test_rounds_draw_independently_and_always_alike():
    assert draw_order(100, 0, 1).tolist() == draw_order(100, 0, 1).tolist() != draw_order(100, 0, 2).tolist()
    assert sorted(draw_order(100, 0, 1).tolist()) == list(range(100))


def test_images_that_were_labeled_before_the_run_are_not_checked(opened):
    order = draw_order(len(opened.predictions), opened.seed, 1)
    opened.state.is_given[order[:3]] = True
    assert opened.next_check("anna") == order[3]
