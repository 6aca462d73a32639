from __future__ import annotations

import numpy as np
import pytest

from justright.review.actions import split_rows
from justright.review.state import REJECTED, ConflictError, Opinion
from justright.utils.errors import DegenerateError

ROWS = np.arange(100, 130)


def two_heaps():
    rng = np.random.default_rng(0)
    features = np.zeros((200, 4), dtype=np.float32)
    features[100:110] = [1, 0, 0, 0]
    features[110:130] = [0, 1, 0, 0]
    return features + 0.01 * rng.normal(size=features.shape).astype(np.float32)


def test_split_separates_two_groups():
    assert split_rows(ROWS, two_heaps(), 2, seed=0) == [list(range(100, 110))]


def test_same_seed_same_parts():
    assert split_rows(ROWS, two_heaps(), 5, seed=1) == split_rows(ROWS, two_heaps(), 5, seed=1)


def test_split_parts_are_disjoint_and_keep_the_largest():
    parts = split_rows(ROWS, two_heaps(), 4, seed=0)
    gone = [row for part in parts for row in part]
    assert len(set(gone)) == len(gone)
    assert len(ROWS) - len(gone) >= max(map(len, parts))


def test_equal_features_or_too_few_images_are_refused():
    with pytest.raises(DegenerateError):
        split_rows(ROWS, np.ones((200, 4), dtype=np.float32), 2, seed=0)
    with pytest.raises(DegenerateError, match="2 images cannot make 3"):
        split_rows(ROWS[:2], two_heaps(), 3, seed=0)


def test_keep_confirms_the_name_of_named_clusters_only(opened, say):
    new = next(c for c, label in opened.state.labels.items() if label.kind == "discovered")
    say(opened, "keep", cluster=0)
    say(opened, "keep", cluster=new)
    say(opened, "discard", by="ben", cluster=new)
    assert opened.state.opinions[0] == {"anna": Opinion("keep", opened.state.labels[0].name)}
    assert opened.state.opinions[new] == {"anna": Opinion("keep", None), "ben": Opinion("reject", None)}


def test_names_apply_to_all_reviewers(opened, say):
    say(opened, "name", cluster=14, name="goose")
    say(opened, "known", cluster=15, name=opened.known_classes[0])
    labels = [opened.state.labels[c] for c in (14, 15)]
    assert [(label.name, label.kind) for label in labels] == [
        ("goose", "discovered"),
        (opened.known_classes[0], "known"),
    ]
    assert opened.state.status(14) == "kept"


def test_merge_move_and_reject_move_images(opened, say):
    a, b, c = (opened.state.rows_of(cluster).tolist() for cluster in (1, 2, 3))
    say(opened, "merge", cluster=1, into=2)
    assert opened.state.rows_of(2).tolist() == sorted(a + b)
    say(opened, "reject", cluster=3, rows=c[:2])
    assert opened.state.rows_of(REJECTED).tolist() == c[:2]
    [made] = say(opened, "move", cluster=REJECTED, rows=c[:1], to=None).made
    say(opened, "move", cluster=REJECTED, rows=c[1:2], to=2)
    assert opened.state.group[c[:2]].tolist() == [made, 2]
    assert opened.state.labels[made].name == f"cluster-{made}"


def test_stale_split_is_rejected(opened, say):
    say(opened, "reject", cluster=3, rows=opened.state.rows_of(3)[:1].tolist())
    with pytest.raises(ConflictError, match="changed since you saw it"):
        say(opened, "split", by="ben", base=0, cluster=3, n_parts=2)
