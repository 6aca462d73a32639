from __future__ import annotations

import secrets
import threading

import httpx
import pytest
from tests.review.live import LiveReview

from justright.review.open_review import OpenReview
from justright.review.server import STATIC, make_app


@pytest.fixture
def client(opened):
    from starlette.testclient import TestClient

    with TestClient(make_app(opened, "anna")) as client:
        yield client


def test_every_file_of_the_page_is_served_and_says_what_it_is(client):
    assert {"review.html", "review.css", "review.js"} <= set(STATIC)
    assert client.get("/").headers["content-type"].startswith("text/html")
    for name in STATIC:
        assert client.get(f"/static/{name}").content == STATIC[name][0]


def test_the_page_names_nothing_outside_itself():
    for name, (content, _) in STATIC.items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, name
        assert "https:" not in text, name
        assert "innerHTML" not in text, name


def test_lists_come_in_pages(client, opened):
    every = client.get("/clusters", params={"limit": 500}).json()["clusters"]
    pages = [client.get("/clusters", params={"limit": 10, "offset": o}).json()["clusters"] for o in (0, 10, 20, 30)]
    assert [card for page in pages for card in page] == every
    assert len(every) == len(opened.lists.clusters())


def test_an_image_is_asked_for_by_number(client):
    answer = client.get("/images/0/160")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.content[:2] == b"\xff\xd8"


def test_progress_counts_clusters_and_images(client, opened, say):
    say(opened, "keep", cluster=0)
    say(opened, "reject", cluster=1, rows=opened.state.rows_of(1)[:2].tolist())
    status = client.get("/status").json()
    assert (status["n_reviewed"], status["n_rejected"]) == (1, 2)
    assert status["n_images_reviewed"] == len(opened.state.rows_of(0)) + 2
    assert status["changed"] == [0, 1]
    assert client.get("/status", params={"since": 1}).json()["changed"] == [1]


def test_a_log_that_cannot_be_written_is_said_not_hidden(client, opened):
    opened.folder.mkdir()
    opened.log.path.mkdir()  # no file can be there
    body = {"id": "ab" * 8, "base": 0, "reviewer": "anna", "action": {"do": "keep", "cluster": 0}}
    answer = client.post("/act", json=body)
    assert answer.status_code == httpx.codes.INSUFFICIENT_STORAGE
    assert "Not saved" in answer.json()["error"]


def test_a_damaged_image_is_missing_and_the_rest_works(client, opened, monkeypatch):
    from justright.errors import BadImageError

    def damaged(row, size):
        raise BadImageError("damaged")

    monkeypatch.setattr(opened.thumbnails, "get", damaged)
    assert client.get("/images/0/160").status_code == 404
    assert client.get("/status").status_code == 200


def test_every_action_that_was_answered_survives_kill_9(run):
    live, answered = LiveReview(run.path), []
    for life in range(2):
        live.start()
        killer = threading.Timer(0.7, live.kill)
        killer.start()
        client = httpx.Client()
        try:
            while True:
                key = secrets.token_hex(8)
                action = {"do": "keep", "cluster": len(answered) % 9}
                body = {"id": key, "base": 10**6, "reviewer": f"life {life}", "action": action}
                client.post(f"{live.url}act", json=body).raise_for_status()
                answered.append(key)
        except httpx.TransportError:
            killer.join()
            client.close()
    state = OpenReview(run).state
    found = [entry.line.id for entry in state.entries]
    assert [key for key in found if key in set(answered)] == answered
    assert len(found) - len(answered) <= 2  # one a life may be written without its answer having left
    assert len(answered) > 10
