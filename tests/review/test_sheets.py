from __future__ import annotations

import numpy as np
import pytest

from justright.review.actions import REJECTED


def test_clusters_come_largest_least_certain_or_by_name_first(opened):
    sizes = [opened.sheets.card(c).n_images for c in opened.sheets.cards("largest")[0]]
    assert sizes == sorted(sizes, reverse=True)
    confidence = [opened.sheets.card(c).confidence for c in opened.sheets.cards("uncertain")[0]]
    assert confidence == sorted(confidence)
    names = [opened.sheets.card(c).name for c in opened.sheets.cards("name")[0]]
    assert names == sorted(names)


def test_a_card_counts_its_images_and_averages_their_confidence(opened):
    for cluster in opened.sheets.cards()[0]:
        rows = [row for row in range(len(opened.state.group)) if opened.state.group[row] == cluster]
        card = opened.sheets.card(cluster)
        assert card.n_images == len(rows)
        assert card.confidence == pytest.approx(sum(float(opened.sheets.confidence[row]) for row in rows) / len(rows))


def test_search_and_status_choose_from_the_list(opened, say):
    say(opened, "name", cluster=3, name="Snow Goose")
    assert opened.sheets.cards(search="goose snow")[0] == [3]
    assert opened.sheets.cards(status="kept")[0] == [3]
    assert 3 not in opened.sheets.cards(status="open")[0]


def test_central_images_lead_outliers_trail_and_the_uncertain_are_found(opened):
    rows = opened.state.rows_of(2)
    x = opened.features[rows].astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    similarity = dict(zip(rows.tolist(), (x @ x.mean(axis=0)).tolist(), strict=True))
    central = opened.sheets.images(2, "central").tolist()
    assert central == sorted(rows.tolist(), key=lambda row: -similarity[row])
    assert opened.sheets.images(2, "outlying").tolist() == central[::-1]
    assert opened.sheets.cover(2) == central[0]
    uncertain = opened.sheets.confidence[opened.sheets.images(2, "uncertain")]
    assert (np.diff(uncertain) >= 0).all()


def test_orders_follow_what_is_done(opened, say):
    before = opened.sheets.images(2, "central").tolist()
    say(opened, "reject", cluster=2, rows=before[:1])
    assert opened.sheets.images(2, "central").tolist()[0] != before[0]
    assert sorted(opened.sheets.images(2, "central").tolist()) == sorted(before[1:])
    assert opened.sheets.images(REJECTED, "central").tolist() == before[:1]


def test_an_image_unlike_all_is_the_least_certain(opened):
    unlike = int(np.flatnonzero(opened.predictions.is_neither)[0])
    assert opened.sheets.images(int(opened.state.group[unlike]), "uncertain")[0] == unlike


def test_clusters_to_go_to_come_by_similarity_of_their_centroid(opened):
    def mean_direction(rows):
        x = opened.features[rows].astype(np.float64)
        return (x / np.linalg.norm(x, axis=1, keepdims=True)).mean(axis=0)

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    some = opened.state.rows_of(1)[:2].tolist()
    for rows in ([], some):
        own = mean_direction(rows or opened.state.rows_of(1))
        near = opened.sheets.near(1, rows)
        assert sorted(near) == [c for c in sorted(opened.sheets.cards()[0]) if c != 1]
        similarity = [cosine(own, mean_direction(opened.state.rows_of(c))) for c in near]
        assert similarity == sorted(similarity, reverse=True)
