from __future__ import annotations

import pytest

from justright.review.state import REJECTED, ConflictError


def test_undo_rejects_actions_that_later_ones_build_on(opened, say):
    rows = opened.state.rows_of(0).tolist()
    first = say(opened, "move", cluster=0, rows=rows[:2], to=1).line.seq
    say(opened, "move", by="ben", cluster=1, rows=rows[:1], to=2)
    with pytest.raises(ConflictError, match="a later action changed what action 1 did"):
        say(opened, "undo", target=first)
    say(opened, "undo", by="ben")
    say(opened, "undo", target=first)
    assert (opened.state.group[rows] == 0).all()


def test_undo_keeps_unrelated_actions(opened, say):
    mine = opened.state.rows_of(0)[:1].tolist()
    theirs = opened.state.rows_of(3)[:1].tolist()
    say(opened, "reject", cluster=0, rows=mine)
    say(opened, "reject", by="ben", cluster=3, rows=theirs)
    say(opened, "undo")
    assert opened.state.group[mine + theirs].tolist() == [0, REJECTED]


def test_undo_and_redo_affect_only_own_actions(opened, say):
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


def test_redo_is_rejected_after_a_new_action(opened, say):
    say(opened, "keep", cluster=0)
    say(opened, "undo")
    say(opened, "keep", cluster=1)
    with pytest.raises(ConflictError, match="anna has nothing to redo"):
        say(opened, "redo")


def test_action_is_undone_only_once(opened, say):
    say(opened, "keep", cluster=0)
    say(opened, "undo", target=1)
    with pytest.raises(ConflictError, match="there is no action 1 to undo"):
        say(opened, "undo", by="ben", target=1)


def test_numbers_of_undone_clusters_are_not_reused(opened, say):
    rows = opened.state.rows_of(0).tolist()
    [first] = say(opened, "move", cluster=0, rows=rows[:1], to=None).made
    say(opened, "undo")
    [second] = say(opened, "move", cluster=0, rows=rows[:1], to=None).made
    assert second == first + 1


def test_new_cluster_in_use_cannot_be_undone(opened, run, say):
    rows = opened.state.rows_of(0).tolist()
    [new] = say(opened, "move", cluster=0, rows=rows[:1], to=None).made
    say(opened, "move", by="ben", cluster=0, rows=rows[1:2], to=new)
    with pytest.raises(ConflictError, match=rf"action 1 cannot be undone: cluster-{new} is used by action 2 \(ben\)"):
        say(opened, "undo")
    assert opened.state.seq == 2
    say(opened, "undo", by="ben")
    say(opened, "undo")
    assert not opened.state.has(new)


def test_a_split_is_not_undone_after_a_merge_into_its_part(opened, say):
    [part] = say(opened, "split", cluster=0, n_parts=2).made
    say(opened, "merge", cluster=1, into=part)
    with pytest.raises(ConflictError, match=f"cluster-{part} is used by action 2"):
        say(opened, "undo", target=1)
    assert opened.state.has(part)


def test_undo_cannot_return_images_to_a_removed_cluster(opened, say):
    rows = opened.state.rows_of(0).tolist()
    [new] = say(opened, "move", cluster=0, rows=rows[:1], to=None).made
    say(opened, "move", by="ben", cluster=0, rows=rows[1:2], to=new)
    say(opened, "move", by="ben", cluster=new, rows=rows[1:2], to=3)
    say(opened, "undo")
    with pytest.raises(ConflictError, match=rf"cluster-{new} was removed by action 4 \(anna\)"):
        say(opened, "undo", by="ben")
    say(opened, "redo")
    say(opened, "undo", by="ben")
    assert opened.state.rows_of(new).tolist() == rows[:2]


def test_a_new_cluster_that_someone_judged_is_not_undone(opened, say):
    [new] = say(opened, "move", cluster=0, rows=opened.state.rows_of(0)[:1].tolist(), to=None).made
    say(opened, "keep", by="ben", cluster=new)
    with pytest.raises(ConflictError, match=f"cluster-{new} is used by action 2"):
        say(opened, "undo")
