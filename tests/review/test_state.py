from __future__ import annotations

import numpy as np
import pytest

from justright.review.open_review import OpenReview
from justright.review.state import REJECTED, ConflictError, ReviewState


def picture_of(state):
    """The complete state of a review, to compare."""
    return (
        state.group.tolist(),
        dict(state.labels),
        {c: dict(text) for c, text in state.opinions.items() if text},
        {r: dict(text) for r, text in state.checks.items() if text},
        dict(state.rounds),
        {name: dict(table) for name, table in state.tables.items() if table},
    )


def random_action(state, rng):
    clusters = np.unique(state.group[state.group != REJECTED])
    cluster, other = (int(c) for c in rng.choice(clusters, 2, replace=False))
    rows = rng.permutation(state.rows_of(cluster))[:3].tolist()
    return [
        ("keep", {"cluster": cluster}),
        ("discard", {"cluster": cluster}),
        ("name", {"cluster": cluster, "name": f"name {rng.integers(9)}"}),
        ("merge", {"cluster": cluster, "into": other}),
        ("split", {"cluster": cluster, "n_parts": 2}),
        ("move", {"cluster": cluster, "rows": rows, "to": other}),
        ("move", {"cluster": cluster, "rows": rows, "to": None}),
        ("reject", {"cluster": cluster, "rows": rows}),
    ][rng.integers(8)]


@pytest.mark.parametrize("seed", range(3))
def test_undo_redo_and_replay_are_exact(opened, run, say, seed):
    rng = np.random.default_rng(seed)
    start, n_done = picture_of(opened.state), 0
    while n_done < 40:
        do, fields = random_action(opened.state, rng)
        if do == "split" and len(opened.state.rows_of(fields["cluster"])) < 3:
            continue
        say(opened, do, **fields)
        n_done += 1
    end = picture_of(opened.state)
    for _ in range(n_done):
        say(opened, "undo")
    assert picture_of(opened.state) == start
    with pytest.raises(ConflictError, match="anna has nothing to undo"):
        say(opened, "undo")
    for _ in range(n_done):
        say(opened, "redo")
    assert picture_of(opened.state) == end
    assert picture_of(OpenReview(run).state) == end


def test_stale_action_is_rejected_only_for_changed_clusters(opened, say):
    say(opened, "name", cluster=1, name="new name")
    for do, fields in [
        ("keep", {"cluster": 1}),
        ("name", {"cluster": 1, "name": "other"}),
        ("merge", {"cluster": 1, "into": 2}),
        ("merge", {"cluster": 2, "into": 1}),
        ("split", {"cluster": 1, "n_parts": 2}),
    ]:
        with pytest.raises(ConflictError, match="new name changed since you saw it"):
            say(opened, do, by="ben", base=0, **fields)
    say(opened, "keep", by="ben", base=0, cluster=2)
    assert opened.state.seq == 2


def test_move_rejects_images_that_left_the_cluster(opened, say):
    rows = opened.state.rows_of(0).tolist()
    say(opened, "move", cluster=0, rows=rows[:1], to=1)
    with pytest.raises(ConflictError, match="no longer in this cluster"):
        say(opened, "move", by="ben", base=0, cluster=0, rows=rows[:2], to=2)
    say(opened, "move", by="ben", base=0, cluster=0, rows=rows[1:2], to=2)
    assert opened.state.group[rows[:2]].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("do", "fields"),
    [
        ("keep", {"cluster": 9999}),
        ("merge", {"cluster": 1, "into": 1}),
        ("merge", {"cluster": 1, "into": 9999}),
        ("known", {"cluster": 1, "name": "no such class"}),
        ("move", {"cluster": 0, "rows": [2**31 - 1], "to": 1}),
        ("undo", {"target": 99}),
        ("round", {"round": 7}),
        ("redo", {}),
    ],
)
def test_invalid_actions_are_rejected_and_not_logged(opened, say, do, fields):
    with pytest.raises(ConflictError):
        say(opened, do, **fields)
    assert not opened.log.path.exists()


def test_the_same_request_sent_twice_is_done_once(opened, say):
    rows = opened.state.rows_of(0)[:1].tolist()
    first = say(opened, "move", key="ab" * 8, base=0, cluster=0, rows=rows, to=None)
    second = say(opened, "move", key="ab" * 8, base=0, cluster=0, rows=rows, to=None)
    assert first == second
    assert opened.state.seq == 1


def test_cluster_is_disputed_until_reviewers_agree(opened, say):
    say(opened, "keep", cluster=0)
    assert opened.state.status(0) == "kept"
    say(opened, "discard", by="ben", cluster=0)
    assert opened.state.status(0) == "disputed"
    say(opened, "keep", by="ben", cluster=0)
    assert opened.state.status(0) == "kept"


def test_a_split_opens_the_cluster_again(opened, say):
    say(opened, "keep", cluster=0)
    made = say(opened, "split", cluster=0, n_parts=3).made
    assert [opened.state.status(c) for c in (0, *made)] == ["open"] * 3
    assert len(opened.state.rows_of(0)) >= max(len(opened.state.rows_of(c)) for c in made)


def test_review_cluster_names_avoid_earlier_classes(opened):
    state = ReviewState(opened.predictions, frozenset({"cluster-90"}))
    assert state.new_group(90).after.name == "cluster-90-new"
    assert state.new_group(91).after.name == "cluster-91"
