from __future__ import annotations

import contextlib
import re
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


def test_every_static_file_is_served_with_its_type(client):
    assert {"review.html", "review.css", "review.js"} <= set(STATIC)
    assert client.get("/").headers["content-type"].startswith("text/html")
    for name in STATIC:
        assert client.get(f"/static/{name}").content == STATIC[name][0]
    named = re.findall(r'(?:href|src)="([^"]+)"', STATIC["review.html"][0].decode())
    assert len(named) == 3
    for address in named:
        assert client.get(f"/{address}").status_code == httpx.codes.OK, address


def test_page_refers_to_no_other_site():
    for name, (content, _) in STATIC.items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, name
        assert "https:" not in text, name
        assert "innerHTML" not in text, name


def test_images_are_requested_by_number(client):
    answer = client.get("/images/0/160")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.content[:2] == b"\xff\xd8"


def test_unwritable_log_is_an_error(client, opened):
    opened.folder.mkdir()
    opened.log.path.mkdir()  # no file can be there
    body = {"id": "ab" * 8, "base": 0, "reviewer": "anna", "action": {"do": "keep", "cluster": 0}}
    answer = client.post("/act", json=body)
    assert answer.status_code == httpx.codes.INSUFFICIENT_STORAGE
    assert "Not saved" in answer.json()["error"]


def test_rejected_request_names_the_field(client):
    body = {"id": "ab" * 8, "base": 0, "reviewer": "anna", "action": {"do": "keep", "cluster": "1"}}
    for action, message in [
        ({"do": "keep", "cluster": "1"}, "body.action: cluster: Input should be a valid integer"),
        ({"do": "delete"}, "body.action: do: Expected one of keep, discard, name"),
        ({"do": ["keep"]}, "body.action: do: Expected one of"),
        ({"do": "part", "cluster": 1, "parts": [[1]]}, "occurs in the log only"),
        ("keep", "body.action"),
    ]:
        answer = client.post("/act", json=body | {"action": action})
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
        assert message in answer.json()["error"]


def test_a_damaged_image_is_missing_and_the_rest_works(client, opened, monkeypatch):
    from justright.utils.errors import BadImageError

    def damaged(row, size):
        raise BadImageError("damaged")

    monkeypatch.setattr(opened.thumbnails, "get", damaged)
    assert client.get("/images/0/160").status_code == 404
    assert client.get("/status").status_code == 200


@pytest.mark.parametrize("n_answers", [0, 12])
def test_confirmed_actions_survive_kill_9(run, n_answers):
    live, answered = LiveReview(run.path), []
    for life in range(2):
        live.start()
        enough, n_in_this_life = threading.Event(), 0
        killer = threading.Thread(target=lambda event=enough: (event.wait(), live.kill()))
        killer.start()
        with httpx.Client() as client, contextlib.suppress(httpx.TransportError):
            while True:  # the kill comes while requests go on, somewhere between or within them
                if n_in_this_life == n_answers:
                    enough.set()
                key = secrets.token_hex(8)
                action = {"do": "keep", "cluster": len(answered) % 9}
                body = {"id": key, "base": 10**6, "reviewer": f"life {life}", "action": action}
                client.post(f"{live.url}act", json=body).raise_for_status()
                answered.append(key)
                n_in_this_life += 1
        killer.join()
    found = [entry.line.id for entry in OpenReview(run).state.entries]
    assert len(answered) >= 2 * n_answers
    assert [key for key in found if key in set(answered)] == answered
    assert len(found) - len(answered) <= 2  # one a life may be written without its answer having left
