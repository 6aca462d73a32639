from __future__ import annotations

import numpy as np
import pytest

from justright.benchmark.run_folder import RunFolder
from justright.errors import DegenerateError
from justright.review.actions import REJECTED
from justright.review.desk import Desk


def test_every_kind_of_action_can_be_done_and_is_found_again_by_a_new_desk(desk, run, say):
    rows = desk.state.rows_of(2).tolist()
    say(desk, "keep", cluster=0)
    say(desk, "name", cluster=1, name="alef")
    say(desk, "known", cluster=3, name=desk.known_classes[0])
    say(desk, "merge", cluster=4, into=5)
    say(desk, "split", cluster=6, n_parts=2)
    say(desk, "move", cluster=2, rows=rows[:2], to=7)
    say(desk, "move", cluster=2, rows=rows[2:3], to=None)
    say(desk, "reject", cluster=2, rows=rows[3:4])
    say(desk, "discard", cluster=8)
    row = desk.next_check("anna")
    say(desk, "check", round=1, row=row, cluster=int(desk.state.group[row]), is_right=True)
    say(desk, "round", round=2)
    say(desk, "undo")
    again = Desk(run)
    assert again.state.seq == 12
    np.testing.assert_array_equal(again.state.group, desk.state.group)
    assert again.state.labels == desk.state.labels
    assert again.state.opinions == desk.state.opinions
    assert again.state.checks == desk.state.checks
    assert (again.state.group[rows[:2]] == 7).all()
    assert again.state.group[rows[3]] == REJECTED
    assert again.state.round == 1


def test_two_desks_on_one_run_see_each_other(run, desk, say):
    other = Desk(run)
    say(desk, "name", cluster=0, name="zero")
    with other.reading() as state:
        assert state.labels[0].name == "zero"
    say(other, "keep", by="ben", base=1, cluster=0)
    assert say(desk, "keep", cluster=1).seq == 3


def test_without_features_a_review_works_and_a_split_says_why_not(run, say):
    (run.path / "tuned.npy").unlink()
    desk = Desk(RunFolder.open(run.path))
    assert len(desk.sheets.images(0, "central"))
    with pytest.raises(DegenerateError, match="no features"):
        say(desk, "split", cluster=0, n_parts=2)
