from __future__ import annotations

import numpy as np
import pytest

from justright.evaluation import estimate_accuracy
from justright.review.accuracy import accuracy, checked_images, draw_order
from justright.review.changes import ConflictError


def check(desk, say, is_right, by="anna"):
    row = desk.next_check(by)
    say(desk, "check", by=by, round=desk.state.round, row=row, cluster=int(desk.state.group[row]), is_right=is_right)
    return row


def test_the_estimate_is_that_of_the_random_checks(desk, say):
    assert accuracy(desk.state, desk.sheets.confidence) is None
    verdicts = [n % 3 > 0 for n in range(30)]
    rows = [check(desk, say, is_right) for is_right in verdicts]
    found = accuracy(desk.state, desk.sheets.confidence)
    assert found == estimate_accuracy(
        np.sort(rows),
        np.array(verdicts)[np.argsort(rows)],
        len(desk.predictions),
        confidence=desk.sheets.confidence.astype(np.float64),
    )


def test_only_the_image_that_was_drawn_can_be_checked(desk, say):
    row = desk.next_check("anna")
    other = next(r for r in range(len(desk.predictions)) if r != row)
    with pytest.raises(ConflictError, match="another image is next"):
        say(desk, "check", round=1, row=other, cluster=int(desk.state.group[other]), is_right=True)


def test_every_reviewer_judges_the_same_images(desk, say):
    first = [check(desk, say, True) for _ in range(4)]
    assert [check(desk, say, True, by="ben") for _ in range(4)] == first


def test_a_tie_between_reviewers_counts_as_wrong(desk, say):
    row = check(desk, say, True)
    check(desk, say, False, by="ben")
    assert checked_images(desk.state, 1) == {row: False}
    check(desk, say, True, by="cleo")
    assert checked_images(desk.state, 1) == {row: True}


def test_corrections_leave_the_round_as_it_was_and_a_new_round_draws_afresh(desk, say):
    rows = [check(desk, say, False) for _ in range(3)]
    say(desk, "reject", cluster=int(desk.state.group[rows[0]]), rows=rows[:1])
    assert accuracy(desk.state, desk.sheets.confidence).accuracy == 0
    say(desk, "round", round=2)
    assert accuracy(desk.state, desk.sheets.confidence).n_checked == 3, "until round 2 has a check, round 1 stands"
    check(desk, say, True)
    found = accuracy(desk.state, desk.sheets.confidence)
    assert (found.accuracy, found.n_checked, found.n_images) == (1, 1, len(desk.predictions) - 1)


def test_rejected_images_are_not_drawn(desk, say):
    row = desk.next_check("anna")
    say(desk, "reject", cluster=int(desk.state.group[row]), rows=[row])
    assert desk.next_check("anna") != row


def test_rounds_draw_independently_and_always_alike():
    assert draw_order(100, 0, 1).tolist() == draw_order(100, 0, 1).tolist() != draw_order(100, 0, 2).tolist()
    assert sorted(draw_order(100, 0, 1).tolist()) == list(range(100))
