"""Many idle connections do not block a reviewer with the token."""

from __future__ import annotations

from contextlib import ExitStack

import httpx
from tests.made_runs import make_run
from tests.review.live import LiveReview

from justright.review.open_review import OpenReview

N = 300


def test_idle_connections_without_a_token_do_not_block_reviewers(tmp_path):
    run = make_run(tmp_path / "run", per_class=8)
    live = LiveReview(run.path)
    live.start()
    try:
        with ExitStack() as open_:
            for n in range(N):
                open_.enter_context(live.connect(b"GET / HTTP/1.1\r\nHost: 127" if n % 2 else b""))
            with httpx.Client() as client:  # a person with the token, in the middle of it
                page = client.get(live.url)
                body = {"id": "ab" * 8, "base": 0, "reviewer": "anna", "action": {"do": "keep", "cluster": 0}}
                saved = client.post(f"{live.url}act", json=body)
                assert (page.status_code, saved.status_code) == (200, 200)
                for _ in range(N):
                    open_.enter_context(live.connect())
                assert client.get(f"{live.url}status").json()["seq"] == 1
            assert httpx.get(live.url).status_code == 200  # on a new connection as well
    finally:
        live.stop()
    assert OpenReview(run).state.status(0) == "kept"
