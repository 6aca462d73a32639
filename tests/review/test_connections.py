"""Limits on connections to a real server."""

from __future__ import annotations

import contextlib
import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.review.live import LiveReview

from justright.review.security import LIMITS, ConnectionLimits

FOREVER = 3600.0
N_CONNECTIONS, N_UNAUTHORIZED = 16, 4


@pytest.fixture(scope="module")
def serve(finished_run, tmp_path_factory):
    """`serve(seconds=1)`: a server that allows few connections and has these limits."""
    with ExitStack() as running:

        def start(**limits) -> LiveReview:
            run = Path(shutil.copytree(finished_run, tmp_path_factory.mktemp("served") / "run"))
            review = LiveReview(run, ConnectionLimits(N_CONNECTIONS, N_UNAUTHORIZED, **limits))
            review.start()
            running.callback(review.stop)
            return review

        yield start


@pytest.fixture(scope="module")
def patient(serve):
    return serve(seconds=FOREVER)


@pytest.fixture(scope="module")
def hasty(serve):
    return serve(seconds=0.2)


def head(live: LiveReview, path: str = "status", **headers: str) -> bytes:
    url = urlsplit(live.url)
    lines = [f"GET {url.path}{path} HTTP/1.1", f"Host: {url.netloc}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def is_closed(connection) -> bool:
    """Wait until the server closes the connection, and return whether it did."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_excess_connection_closes_the_oldest_unauthorized_one(patient):
    with ExitStack() as open_:
        unauthorized = [open_.enter_context(patient.connect(b"GET /")) for _ in range(N_UNAUTHORIZED + 2)]
        assert [is_closed(each) for each in unauthorized[:2]] == [True, True]
        for each in unauthorized[2:]:
            each.sendall(b" HTTP/1.1\r\nHost: elsewhere\r\n\r\n")
            assert each.recv(12) == b"HTTP/1.1 421"


def test_authorized_connection_survives_many_unauthorized_ones(patient):
    with httpx.Client() as client, ExitStack() as open_:
        client.get(patient.url).raise_for_status()
        with patient.connect(head(patient)) as mine:
            assert mine.recv(12) == b"HTTP/1.1 200"
            unauthorized = [open_.enter_context(patient.connect(b"GET /")) for _ in range(3 * N_UNAUTHORIZED)]
            assert all(is_closed(each) for each in unauthorized[: -N_UNAUTHORIZED - 1])
            while not mine.recv(4096).endswith(b"}"):
                pass
            mine.sendall(head(patient))
            assert mine.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("path", ["", "nonsense/status"])
def test_complete_request_without_token_stays_unauthorized(patient, path):
    with patient.connect(f"GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{patient.port}\r\n\r\n".encode()) as connection:
        answer = b""
        while data := connection.recv(4096):  # up to the end of the connection
            answer += data
    assert answer.startswith(b"HTTP/1.1 403")


def test_authorized_connections_are_limited_with_a_message(serve):
    live = serve(seconds=FOREVER)
    with ExitStack() as open_:
        answers = [open_.enter_context(live.connect(head(live))).recv(12) for _ in range(N_CONNECTIONS)]
    assert answers == [b"HTTP/1.1 200"] * (N_CONNECTIONS - 1) + [b"HTTP/1.1 503"]


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: y"])
def test_slow_request_times_out(hasty, sent):
    with hasty.connect(sent) as slow:
        assert is_closed(slow)


def test_incomplete_body_times_out_without_an_action(hasty):
    url = urlsplit(hasty.url)
    body = json.dumps({"id": "ab" * 8, "base": 0, "reviewer": "anna", "action": {"do": "keep", "cluster": 0}}).encode()
    post = f"POST {url.path}act HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    with hasty.connect(f"{post}Content-Length: {len(body) + 1}\r\n\r\n".encode() + body) as slow:
        assert is_closed(slow)
    assert not (hasty.run / "review" / "log.jsonl").exists()


def test_incomplete_second_request_times_out(hasty):
    while True:  # this test may be the slow one: then it asks again
        with contextlib.suppress(ConnectionError), hasty.connect(head(hasty)) as slow:
            answer = slow.recv(4096)
            while answer and not answer.endswith(b"}"):
                answer += slow.recv(4096)
            if answer:
                slow.sendall(head(hasty)[:-1])
                assert is_closed(slow)
                break


def test_default_limits_reserve_most_connections_for_the_token():
    assert LIMITS.n_unauthorized < LIMITS.n_connections / 2
