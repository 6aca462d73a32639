from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from justright.review.actions import MAX_NAME, MAX_ROWS, Asked, Request
from justright.review.cluster_actions import SetName

ASKED = TypeAdapter(Asked)


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
def test_a_name_that_cannot_be_read_is_refused(name):
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
def test_what_is_no_action_is_refused(action):
    with pytest.raises(ValidationError):
        ASKED.validate_python(action)


@pytest.mark.parametrize("key", ["", "short", "../../etc/passwd0000", "A" * 16, "0" * 65])
def test_an_id_is_a_hexadecimal_number(key):
    with pytest.raises(ValidationError):
        Request(id=key, base=0, reviewer="anna", action={"do": "keep", "cluster": 1})
