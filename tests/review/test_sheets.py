from __future__ import annotations

import numpy as np
import pytest

from justright.review.actions import REJECTED


def test_clusters_come_largest_least_certain_or_by_name_first(desk):
    sizes = [desk.sheets.card(c).n_images for c in desk.sheets.cards("largest")[0]]
    assert sizes == sorted(sizes, reverse=True)
    confidence = [desk.sheets.card(c).confidence for c in desk.sheets.cards("uncertain")[0]]
    assert confidence == sorted(confidence)
    names = [desk.sheets.card(c).name for c in desk.sheets.cards("name")[0]]
    assert names == sorted(names)


def test_a_card_counts_its_images_and_averages_their_confidence(desk):
    for cluster in desk.sheets.cards()[0]:
        rows = [row for row in range(len(desk.state.group)) if desk.state.group[row] == cluster]
        card = desk.sheets.card(cluster)
        assert card.n_images == len(rows)
        assert card.confidence == pytest.approx(sum(float(desk.sheets.confidence[row]) for row in rows) / len(rows))


def test_search_and_status_choose_from_the_list(desk, say):
    say(desk, "name", cluster=3, name="Snow Goose")
    assert desk.sheets.cards(search="goose snow")[0] == [3]
    assert desk.sheets.cards(status="kept")[0] == [3]
    assert 3 not in desk.sheets.cards(status="open")[0]


def test_central_images_lead_outliers_trail_and_the_uncertain_are_found(desk):
    rows = desk.state.rows_of(2)
    x = desk.features[rows].astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    similarity = dict(zip(rows.tolist(), (x @ x.mean(axis=0)).tolist(), strict=True))
    central = desk.sheets.images(2, "central").tolist()
    assert central == sorted(rows.tolist(), key=lambda row: -similarity[row])
    assert desk.sheets.images(2, "outlying").tolist() == central[::-1]
    assert desk.sheets.cover(2) == central[0]
    uncertain = desk.sheets.confidence[desk.sheets.images(2, "uncertain")]
    assert (np.diff(uncertain) >= 0).all()


def test_orders_follow_what_is_done(desk, say):
    before = desk.sheets.images(2, "central").tolist()
    say(desk, "reject", cluster=2, rows=before[:1])
    assert desk.sheets.images(2, "central").tolist()[0] != before[0]
    assert sorted(desk.sheets.images(2, "central").tolist()) == sorted(before[1:])
    assert desk.sheets.images(REJECTED, "central").tolist() == before[:1]


def test_an_image_unlike_all_is_the_least_certain(desk):
    unlike = int(np.flatnonzero(desk.predictions.is_neither)[0])
    assert desk.sheets.images(int(desk.state.group[unlike]), "uncertain")[0] == unlike


def test_clusters_to_go_to_come_by_similarity_of_their_centroid(desk):
    def mean_direction(rows):
        x = desk.features[rows].astype(np.float64)
        return (x / np.linalg.norm(x, axis=1, keepdims=True)).mean(axis=0)

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    some = desk.state.rows_of(1)[:2].tolist()
    for rows in ([], some):
        own = mean_direction(rows or desk.state.rows_of(1))
        near = desk.sheets.near(1, rows)
        assert sorted(near) == [c for c in sorted(desk.sheets.cards()[0]) if c != 1]
        similarity = [cosine(own, mean_direction(desk.state.rows_of(c))) for c in near]
        assert similarity == sorted(similarity, reverse=True)
