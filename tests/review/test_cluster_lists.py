from __future__ import annotations

import numpy as np
import pytest

from justright.review.cluster_lists import corrections_per_click
from justright.review.state import REJECTED


def test_order_of_clusters(opened):
    pays = corrections_per_click(1 - opened.lists.confidence, opened.state.group, opened.state.n_groups)
    ordered = [pays[c] for c in opened.lists.clusters()]
    assert ordered == sorted(ordered, reverse=True)
    sizes = [opened.lists.summary(c)["n"] for c in opened.lists.clusters("largest")]
    assert sizes == sorted(sizes, reverse=True)
    names = [opened.lists.summary(c)["name"] for c in opened.lists.clusters("name")]
    assert names == sorted(names)


def test_judged_clusters_come_last_unless_disputed(opened, say):
    before = opened.lists.clusters()
    say(opened, "keep", cluster=before[0])
    say(opened, "discard", cluster=before[1])
    assert opened.lists.clusters() == [*before[2:], *sorted(before[:2])]
    say(opened, "discard", by="ben", cluster=before[0])
    assert opened.lists.clusters() == [before[0], *before[2:], before[1]]
    for _ in range(2):
        say(opened, "undo")
    say(opened, "undo", by="ben")
    assert opened.lists.clusters() == before


def test_moved_images_count_as_certain(opened, say):
    unlike = int(np.flatnonzero(opened.predictions.is_neither)[0])
    home = int(opened.state.group[unlike])
    to = next(cluster for cluster in opened.lists.alive() if cluster != home)
    say(opened, "move", cluster=home, rows=[unlike], to=to)
    assert opened.lists.images(to, "uncertain")[-1] == unlike
    say(opened, "undo")
    assert opened.lists.images(home, "uncertain")[0] == unlike


def test_summary_of_a_cluster(opened):
    for cluster in opened.lists.clusters():
        rows = [row for row in range(len(opened.state.group)) if opened.state.group[row] == cluster]
        summary = opened.lists.summary(cluster)
        assert summary["n"] == len(rows)
        sure = [float(opened.predictions.confidence[row]) for row in rows if not opened.predictions.is_given[row]]
        assert summary["confidence"] == pytest.approx(sum(sure) / len(sure), abs=5e-5)
        assert summary["confidence"] == pytest.approx(opened.predictions.purity[cluster], abs=5e-5), "as in the report"


def test_search_and_status_choose_from_the_list(opened, say):
    say(opened, "name", cluster=3, name="Snow Goose")
    assert opened.lists.clusters(search="goose snow") == [3]
    assert opened.lists.clusters(status="kept") == [3]
    assert 3 not in opened.lists.clusters(status="open")


def test_images_sort_by_centrality_and_by_uncertainty(opened):
    rows = opened.state.rows_of(2)
    x = opened.features[rows].astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    similarity = dict(zip(rows.tolist(), (x @ x.mean(axis=0)).tolist(), strict=True))
    central = opened.lists.images(2, "central").tolist()
    assert central == sorted(rows.tolist(), key=lambda row: -similarity[row])
    assert opened.lists.images(2, "outlying").tolist() == central[::-1]
    assert opened.lists.summary(2)["cover"] == central[0]
    uncertain = opened.lists.confidence[opened.lists.images(2, "uncertain")]
    assert (np.diff(uncertain) >= 0).all()


def test_orders_follow_actions(opened, say):
    before = opened.lists.images(2, "central").tolist()
    say(opened, "reject", cluster=2, rows=before[:1])
    assert opened.lists.images(2, "central").tolist()[0] != before[0]
    assert sorted(opened.lists.images(2, "central").tolist()) == sorted(before[1:])
    assert opened.lists.images(REJECTED, "central").tolist() == before[:1]


def test_an_image_unlike_all_is_the_least_certain(opened):
    unlike = int(np.flatnonzero(opened.predictions.is_neither)[0])
    assert opened.lists.images(int(opened.state.group[unlike]), "uncertain")[0] == unlike


def test_move_targets_sort_by_centroid_similarity(opened):
    def mean_direction(rows):
        x = opened.features[rows].astype(np.float64)
        return (x / np.linalg.norm(x, axis=1, keepdims=True)).mean(axis=0)

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    some = opened.state.rows_of(1)[:2].tolist()
    for rows in ([], some):
        own = mean_direction(rows or opened.state.rows_of(1))
        near = opened.lists.near(1, rows)
        assert sorted(near) == [c for c in sorted(opened.lists.clusters()) if c != 1]
        similarity = [cosine(own, mean_direction(opened.state.rows_of(c))) for c in near]
        assert similarity == sorted(similarity, reverse=True)


def test_move_targets_without_images_sort_by_size(opened):
    assert opened.lists.near(REJECTED, []) == opened.lists.clusters("largest")
