"""Short ways to act on a review."""

from __future__ import annotations

import secrets

from pydantic import TypeAdapter

from justright.review.actions import Asked, Request
from justright.review.desk import Desk

ASKED = TypeAdapter(Asked)


def act(desk: Desk, do: str, by: str = "anna", base: int | None = None, key: str = "", **fields):
    """`act(desk, "merge", cluster=1, into=2)`: one action on top of everything so far."""
    action = ASKED.validate_python({"do": do, **fields})
    base = desk.state.seq if base is None else base
    return desk.act(Request(id=key or secrets.token_hex(8), base=base, reviewer=by, action=action))


def check(desk: Desk, is_right: bool, by: str = "anna"):
    """Judge the next image that was drawn at random."""
    row = desk.next_check(by)
    cluster = int(desk.state.group[row])
    return act(desk, "check", by=by, round=desk.state.round, row=row, cluster=cluster, is_right=is_right)
