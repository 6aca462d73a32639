"""Short ways to act on a review."""

from __future__ import annotations

import secrets

from pydantic import TypeAdapter

from justright.review.actions import FromPage, Request
from justright.review.open_review import OpenReview

FROM_PAGE = TypeAdapter(FromPage)


def act(opened: OpenReview, do: str, by: str = "anna", base: int | None = None, key: str = "", **fields):
    """`act(opened, "merge", cluster=1, into=2)`: one action on top of everything so far."""
    action = FROM_PAGE.validate_python({"do": do, **fields})
    base = opened.state.seq if base is None else base
    return opened.act(Request(id=key or secrets.token_hex(8), base=base, reviewer=by, action=action))


def check(opened: OpenReview, is_right: bool, by: str = "anna"):
    """Judge the next image that was drawn at random."""
    row = opened.next_check(by)
    cluster = int(opened.state.group[row])
    return act(opened, "check", by=by, round=opened.state.round, row=row, cluster=cluster, is_right=is_right)


def act_in_eight_ways(opened: OpenReview) -> list[int]:
    """Do every action on clusters and images except discard; returns the images that cluster 2 had before."""
    rows = opened.state.rows_of(2).tolist()
    act(opened, "keep", cluster=0)
    act(opened, "name", cluster=1, name="alef")
    act(opened, "known", cluster=3, name=opened.known_classes[0])
    act(opened, "merge", cluster=4, into=5)
    act(opened, "split", cluster=6, n_parts=2)
    act(opened, "move", cluster=2, rows=rows[:2], to=7)
    act(opened, "move", cluster=2, rows=rows[2:3], to=None)
    act(opened, "reject", cluster=2, rows=rows[3:4])
    return rows
