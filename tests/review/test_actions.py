from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from starlette.testclient import TestClient
from tests.contributing_examples import example

from justright.review.actions import ACTIONS, MAX_NAME, MAX_ROWS, Action, FromPage, LogLine, Request, SetName
from justright.review.open_review import OpenReview
from justright.review.server import make_app
from justright.review.state import ConflictError
from justright.utils.errors import DataError, JustrightError

FROM_PAGE = TypeAdapter(FromPage)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        "a\nb",
        "a\x00",
        "a\x1b[31m",
        "\u202egnp.exe",
        "a\u2028b",
        "x" * (MAX_NAME + 1),
        "\ud800",
        7,
        None,
        ["a"],
    ],
)
def test_unreadable_names_are_rejected(name):
    with pytest.raises(ValidationError):
        SetName(cluster=0, name=name)


def test_equal_looking_names_become_equal():
    assert SetName(cluster=0, name="Cafe\u0301 ").name == SetName(cluster=0, name="Caf\u00e9").name == "Café"


@pytest.mark.parametrize("name", ["Größe", "雀", "ال", "family 👩\u200d👧", "a/b", "x" * MAX_NAME])
def test_names_of_every_script_are_taken(name):
    assert SetName(cluster=0, name=name).name == name


@pytest.mark.parametrize(
    "action",
    [
        {},
        {"do": "delete"},
        {"do": "keep"},
        {"do": "keep", "cluster": "1"},
        {"do": "keep", "cluster": True},
        {"do": "keep", "cluster": 1.0},
        {"do": "keep", "cluster": -1},
        {"do": "keep", "cluster": 10**30},
        {"do": "keep", "cluster": 1, "path": "/etc"},
        {"do": "split", "cluster": 1, "n_parts": 1},
        {"do": "split", "cluster": 1, "n_parts": 10_000},
        {"do": "part", "cluster": 1, "parts": [[1]]},
        {"do": "move", "cluster": 1, "rows": [], "to": 2},
        {"do": "move", "cluster": 1, "rows": [-1], "to": 2},
        {"do": "move", "cluster": 1, "rows": [0] * (MAX_ROWS + 1), "to": 2},
        {"do": "reject", "cluster": -1, "rows": [1]},
        {"do": "undo", "target": 0},
    ],
)
def test_invalid_actions_are_rejected_by_their_schema(action):
    with pytest.raises(ValidationError):
        FROM_PAGE.validate_python(action)


@pytest.mark.parametrize("key", ["", "short", "../../etc/passwd0000", "A" * 16, "0" * 65])
def test_an_id_is_a_hexadecimal_number(key):
    with pytest.raises(ValidationError):
        Request(id=key, base=0, reviewer="anna", action={"do": "keep", "cluster": 1})


@pytest.fixture
def flag():
    yield example("review action").Flag
    del ACTIONS["flag"]


def test_external_action_is_served_logged_undone_and_replayed(opened, run, flag):
    def send(client, number, action):
        seq = client.get("/status").json()["seq"]
        body = {"id": f"{number:032x}", "base": seq, "reviewer": "anna", "action": action}
        return client.post("/act", json=body)

    with TestClient(make_app(opened)) as client:
        assert send(client, 1, {"do": "flag", "cluster": 2, "why": " two  kinds"}).json()["changed"] == [2]
        assert opened.state.tables["flags"] == {(2, "anna"): "two kinds"}
        assert json.loads(opened.log.path.read_text().splitlines()[-1])["action"] == {
            "do": "flag",
            "cluster": 2,
            "why": "two kinds",
        }
        texts = client.get("/history").json()["lines"][0]["text"]
        assert texts == f"asked others to look at {opened.state.labels[2].name}: two kinds"
        assert "why: Field required" in send(client, 2, {"do": "flag", "cluster": 2}).json()["error"]
        assert send(client, 3, {"do": "flag", "cluster": 99, "why": "gone"}).status_code == 409
        assert send(client, 4, {"do": "undo"}).status_code == 200
        assert opened.state.tables["flags"] == {}
        assert send(client, 5, {"do": "redo"}).status_code == 200
    again = OpenReview(run)
    assert again.state.tables["flags"] == {(2, "anna"): "two kinds"}
    with TestClient(make_app(again)) as client:
        assert [line["text"] for line in client.get("/history").json()["lines"]][-1] == texts


def test_log_with_an_unknown_action_is_rejected(opened, run, say, flag):
    say(opened, "flag", cluster=2, why="two kinds")
    del ACTIONS["flag"]
    try:
        with pytest.raises(DataError, match="action 1 is of an unknown kind"):
            OpenReview(run)
    finally:
        ACTIONS.add("flag", flag, "")


def test_a_second_action_of_one_name_is_refused():
    with pytest.raises(JustrightError, match="a second review action named 'keep'"):

        class Again(Action, do="keep"):
            """Another."""


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_is_named_and_documented(name):
    assert ACTIONS[name].do == name
    assert ACTIONS.about(name)
    page = Path(__file__).parents[2] / "docs" / "research" / "review-details.md"
    assert f"`{name}`" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["split", "redo"])
def test_resolved_actions_cannot_be_logged_unresolved(opened, name):
    action = {"do": name} | ({"cluster": 0, "n_parts": 2} if name == "split" else {})
    line = LogLine(seq=1, at="2026-01-01T00:00:00Z", by="anna", id="0" * 16, action=action)
    with pytest.raises(ConflictError, match=f"{name} cannot be logged"):
        opened.state.apply(line)


def test_action_round_trips_through_a_log_line():
    action = {"do": "move", "cluster": 1, "rows": [3, 4], "to": None}
    line = LogLine(seq=1, at="2026-01-01T00:00:00Z", by="anna", id="0" * 16, action=action)
    assert list(line.model_dump()["action"].items()) == list(action.items())
    assert LogLine.model_validate(line.model_dump()) == line
