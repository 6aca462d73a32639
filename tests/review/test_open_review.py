from __future__ import annotations

import numpy as np
import pytest
from tests.review.acting import act_in_eight_ways

from justright.review.open_review import OpenReview
from justright.review.state import REJECTED
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DegenerateError


def test_every_action_survives_reopening_the_review(opened, run, say):
    rows = act_in_eight_ways(opened)
    say(opened, "discard", cluster=8)
    row = opened.next_check("anna")
    say(opened, "check", round=1, row=row, cluster=int(opened.state.group[row]), is_right=True)
    say(opened, "round", round=2)
    say(opened, "undo")
    again = OpenReview(run)
    assert again.state.seq == 12
    np.testing.assert_array_equal(again.state.group, opened.state.group)
    assert again.state.labels == opened.state.labels
    assert again.state.opinions == opened.state.opinions
    assert again.state.checks == opened.state.checks
    assert (again.state.group[rows[:2]] == 7).all()
    assert again.state.group[rows[3]] == REJECTED
    assert again.state.round == 1


def test_two_open_reviews_see_each_others_actions(run, opened, say):
    other = OpenReview(run)
    say(opened, "name", cluster=0, name="zero")
    with other.reading() as state:
        assert state.labels[0].name == "zero"
    say(other, "keep", by="ben", base=1, cluster=0)
    assert say(opened, "keep", cluster=1).line.seq == 3


def test_review_without_features_rejects_splits(run, say):
    (run.path / "tuned.npy").unlink()
    opened = OpenReview(RunFolder.open(run.path))
    assert len(opened.lists.images(0, "central"))
    with pytest.raises(DegenerateError, match="no features"):
        say(opened, "split", cluster=0, n_parts=2)


def test_damaged_features_cause_a_warning(run, caplog):
    (run.path / "tuned.npy").write_bytes(b"no array")
    assert OpenReview(RunFolder.open(run.path)).features is None
    assert "tuned.npy" in caplog.text
