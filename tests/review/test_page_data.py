from __future__ import annotations

import pytest
from tests.review.acting import act_in_eight_ways, check

from justright.review.page_data import PageData
from justright.review.state import REJECTED
from justright.utils.errors import MissingDataError


@pytest.fixture
def data(opened):
    return PageData(opened, "anna")


@pytest.fixture
def client(opened):
    from starlette.testclient import TestClient

    from justright.review.server import make_app

    with TestClient(make_app(opened, "anna")) as client:
        yield client


def test_lists_come_in_pages(client, opened):
    every = client.get("/clusters", params={"limit": 500}).json()["clusters"]
    pages = [client.get("/clusters", params={"limit": 10, "offset": o}).json()["clusters"] for o in (0, 10, 20, 30)]
    assert [card for page in pages for card in page] == every
    assert len(every) == len(opened.lists.clusters())


def test_every_response_has_the_number_of_the_last_action(client, opened, say):
    say(opened, "keep", cluster=0)
    for address in ("about", "status", "clusters", "clusters/1", "clusters/1/images", "clusters/1/near", "history"):
        assert client.get(f"/{address}").json()["seq"] == 1
    assert client.get("/check", params={"reviewer": "anna"}).json()["seq"] == 1
    assert client.get("/agreement").json()["seq"] == 1


def test_progress_counts_clusters_and_images(client, opened, say):
    say(opened, "keep", cluster=0)
    say(opened, "reject", cluster=1, rows=opened.state.rows_of(1)[:2].tolist())
    status = client.get("/status").json()
    assert (status["n_reviewed"], status["n_rejected"]) == (1, 2)
    assert status["n_images_reviewed"] == len(opened.state.rows_of(0)) + 2
    assert status["changed"] == [0, 1]
    assert client.get("/status", params={"since": 1}).json()["changed"] == [1]


def test_undo_updates_the_clusters_of_its_target(data, opened, say):
    say(opened, "name", cluster=3, name="goose")
    say(opened, "undo")
    assert data.status(since=1)["changed"] == [3]
    say(opened, "redo")
    assert data.status(since=2)["changed"] == [3]
    say(opened, "keep", by="ben", cluster=5)
    say(opened, "undo", by="ben")
    assert data.status(since=4)["changed"] == [5]


def test_cluster_lists_reviews_and_equal_names(data, opened, say):
    say(opened, "name", cluster=3, name="goose")
    say(opened, "name", cluster=4, name="goose")
    say(opened, "discard", by="ben", cluster=3)
    found = data.cluster(3)
    assert found["opinions"] == {
        "anna": {"verdict": "keep", "name": "goose"},
        "ben": {"verdict": "reject", "name": None},
    }
    assert (found["same_name"], found["status"], found["n"]) == ([4], "disputed", len(opened.state.rows_of(3)))


def test_rejected_images_are_shown_like_a_cluster(data, opened, say):
    rows = opened.state.rows_of(2).tolist()
    say(opened, "reject", cluster=2, rows=rows)
    assert (data.cluster(REJECTED)["n"], data.images(REJECTED)["n"]) == (len(rows), len(rows))
    with pytest.raises(MissingDataError, match="cluster 2 does not exist"):
        data.cluster(2)


def test_page_images_have_confidence_neither_and_given(data, opened):
    opened.predictions.is_given[opened.state.rows_of(2)[:2]] = True
    for row, confidence, is_unlike, is_given in data.images(2)["images"]:
        assert is_given == opened.predictions.is_given[row]
        assert confidence == pytest.approx(float(opened.predictions.confidence[row]), abs=5e-5)
        assert is_unlike == opened.predictions.is_neither[row]


def test_a_check_shows_other_images_of_the_cluster(data, opened):
    found = data.check("anna")
    assert found["row"] not in found["examples"]
    assert found["examples"]
    assert (opened.state.group[found["examples"]] == found["cluster"]).all()


def test_history_describes_every_action(data, opened, say):
    names = {n: label.name for n, label in opened.state.labels.items()}
    rows = act_in_eight_ways(opened)
    say(opened, "move", cluster=REJECTED, rows=rows[3:4], to=7)
    say(opened, "discard", cluster=8)
    check(opened, True)
    say(opened, "round", round=2)
    say(opened, "undo")
    lines = data.history()["lines"]
    texts = [line["text"] for line in reversed(lines)]
    checked = opened.state.name_of(opened.state.entries[10].line.action.cluster)
    assert texts == [
        f"kept {names[0]}",
        "named alef",
        f"known as {opened.known_classes[0]}",
        f"merged {names[4]} into {names[5]}",
        f"split {names[6]} into 2",
        f"moved 2 images from {names[2]} to {names[7]}",
        f"moved 1 image from {names[2]} to a new cluster",
        f"rejected 1 image of {names[2]}",
        f"moved 1 image from the rejected images to {names[7]}",
        f"rejected {names[8]}",
        f"judged an image of {checked} right",
        "started round 2 of the checks",
        "undid action 12",
    ]
    assert [line["seq"] for line in lines if line["is_undone"]] == [12]
    assert [line["seq"] for line in lines if line["is_undo"]] == [13]
    assert [line["seq"] for line in data.history(limit=2)["lines"]] == [13, 12]


def test_doubt_is_shown_until_the_cluster_changes(data, opened, say):
    two, belongs = opened.run.doubts
    assert data.cluster(two.category)["doubt"] == "may be two kinds"
    assert belongs.other is not None
    assert data.cluster(belongs.category)["doubt"] == "", "this hint was right in 4 of 22 cases"
    assert data.cluster(belongs.category + 1)["doubt"] == ""
    say(opened, "name", cluster=two.category, name="Snow Goose")
    assert data.cluster(two.category)["doubt"] == ""
