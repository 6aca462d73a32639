from __future__ import annotations

import pytest

from justright.review.changes import ConflictError
from justright.review.state import REJECTED


def test_an_action_under_a_later_one_cannot_be_undone_before_it(opened, say):
    rows = opened.state.rows_of(0).tolist()
    first = say(opened, "move", cluster=0, rows=rows[:2], to=1).line.seq
    say(opened, "move", by="ben", cluster=1, rows=rows[:1], to=2)
    with pytest.raises(ConflictError, match="changed again since"):
        say(opened, "undo", target=first)
    say(opened, "undo", by="ben")
    say(opened, "undo", target=first)
    assert (opened.state.group[rows] == 0).all()


def test_undo_leaves_alone_what_others_did_elsewhere(opened, say):
    mine = opened.state.rows_of(0)[:1].tolist()
    theirs = opened.state.rows_of(3)[:1].tolist()
    say(opened, "reject", cluster=0, rows=mine)
    say(opened, "reject", by="ben", cluster=3, rows=theirs)
    say(opened, "undo")
    assert opened.state.group[mine + theirs].tolist() == [0, REJECTED]


def test_undo_and_redo_go_through_my_actions_and_leave_those_of_others(opened, say):
    say(opened, "name", cluster=0, name="goose")
    say(opened, "name", by="ben", cluster=1, name="duck")
    say(opened, "name", cluster=2, name="swan")
    before = [opened.predictions.categories[c].name for c in range(3)]
    names = lambda: [opened.state.labels[c].name for c in range(3)]  # noqa: E731
    say(opened, "undo")
    assert names() == ["goose", "duck", before[2]]
    say(opened, "undo")
    assert names() == [before[0], "duck", before[2]]
    say(opened, "redo")
    say(opened, "redo")
    assert names() == ["goose", "duck", "swan"]


def test_nothing_is_done_again_after_something_new(opened, say):
    say(opened, "keep", cluster=0)
    say(opened, "undo")
    say(opened, "keep", cluster=1)
    with pytest.raises(ConflictError, match="nothing of anna is left to do again"):
        say(opened, "redo")


def test_the_same_action_is_not_taken_back_twice(opened, say):
    say(opened, "keep", cluster=0)
    say(opened, "undo", target=1)
    with pytest.raises(ConflictError, match="action 1 is not there to be undone"):
        say(opened, "undo", by="ben", target=1)


def test_a_number_of_a_cluster_that_was_undone_is_never_given_again(opened, say):
    rows = opened.state.rows_of(0).tolist()
    [first] = say(opened, "move", cluster=0, rows=rows[:1], to=None).made
    say(opened, "undo")
    [second] = say(opened, "move", cluster=0, rows=rows[:1], to=None).made
    assert second == first + 1
