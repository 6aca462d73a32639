"""Random requests to the review server: no error 500, no lost action, and the same state after a restart."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.bad_day.fuzzing import ANYTHING, budget, damaged, damages, fits, nearly_fits
from tests.bad_day.test_review_log_fuzz import SCHEMAS, facts
from tests.made_runs import make_run
from tests.review.live import LiveReview

from justright.review.actions import Request
from justright.review.open_review import OpenReview
from justright.review.security import Access, Guard
from justright.review.server import STATIC, ExportRequest, make_app
from justright.runs.run_folder import RunFolder

HOST, TOKEN = "127.0.0.1:80", "t" * 32
READS = ["", "about", "status", "clusters", "clusters/{}", "clusters/{}/images", "clusters/{}/near", "check",
         "history", "agreement", "images/{}/160", "images/{}/640", "images/{}/{}", "export/{}", "static/{}",
         "act", "{}"]  # fmt: skip
QUERIES = ["since", "order", "status", "search", "offset", "limit", "rows", "reviewer", "x"]
WORDS = [
    "largest",
    "uncertain",
    "name",
    "central",
    "outlying",
    "open",
    "kept",
    "all",
    "1,2,3",
    "anna",
    *STATIC,
    "labels.csv",
]
HEADERS = ["host", "origin", "content-type", "content-length", "sec-fetch-site", "sec-fetch-mode", "range", "expect",
           "if-none-match", "accept-encoding", "transfer-encoding", "cookie", "x"]  # fmt: skip
VALUES = ["", HOST, f"http://{HOST}", "null", "evil.example", "cross-site", "navigate", "application/json",
          "text/plain", "0", "-1", "99999999999", "bytes=0-1", "bytes=9-1,2-3", "chunked", "*"]  # fmt: skip


Body = Callable[[OpenReview], bytes]
"""What a request brings, where that depends on how far the review is."""


class Ask(NamedTuple):
    """A request as the server gets it."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes | Body


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


part = (
    st.integers(-2, 40).map(str)
    | st.sampled_from(WORDS)
    | st.integers().map(str)
    | st.text(max_size=12)
    | st.sampled_from(["..", "%2e%2e", "\0", "..%2f", "token", "0" * 5000])
)
queries = st.dictionaries(st.sampled_from(QUERIES), part, max_size=3).map(
    lambda found: "&".join(f"{name}={quote(value, errors='replace')}" for name, value in found.items()).encode()
)
latin = st.text(st.characters(max_codepoint=255), max_size=30)
odd_headers = st.dictionaries(st.sampled_from(HEADERS), st.sampled_from(VALUES) | latin, max_size=2)

actions = st.sampled_from(sorted(SCHEMAS)).flatmap(
    lambda do: st.tuples(fits(SCHEMAS[do]) | nearly_fits(SCHEMAS[do]), st.sampled_from([do] * 9 + ["nonsense"])).map(
        lambda both: {"do": both[1], **both[0]}
    )
)
reviewers = st.sampled_from(["anna", "ben", "Zoë"])
ids = st.integers(0, 99).map(lambda n: f"{n:016x}")
right_acts = st.fixed_dictionaries({"id": ids, "base": st.just(10**6), "reviewer": reviewers, "action": actions})


def fitting(do: str, by: str, one: int, other: int, name: str) -> Body:
    """An action that can be done as the review is when it is sent, in most cases."""

    def body(opened: OpenReview) -> bytes:
        state, alive = opened.state, opened.lists.alive()
        cluster, second = alive[one % len(alive)], alive[other % len(alive)]
        row = opened.next_check(by)
        some = state.rows_of(cluster)[other % 3 :: 3].tolist() or state.rows_of(cluster)[:1].tolist()
        checked = {"round": state.round, "row": row, "is_right": other % 4 > 0}
        fields: dict[str, dict[str, Any]] = {
            "name": {"name": name}, "known": {"name": opened.known_classes[other % len(opened.known_classes)]},
            "merge": {"into": second}, "split": {"n_parts": 2 + other % 3}, "reject": {"rows": some},
            "move": {"rows": some, "to": second if other % 2 else None},
            "check": checked | {"cluster": cluster if row is None else int(state.group[row])},
            "label": {"source": "a.csv", "seen": other % (state.seq + 1), "names": [name], "rows": [some]},
            "undo": {"target": 1 + other % state.seq if one % 2 and state.seq else None},
        }  # fmt: skip
        action = {"do": do} | ({"round": state.round + 1} if do == "round" else {"cluster": cluster})
        if do in ("label", "undo", "redo"):
            del action["cluster"]
        return as_json(
            {
                "id": f"{state.seq:08x}{one:08x}",
                "base": state.seq,
                "reviewer": by,
                "action": action | fields.get(do, {}),
            }
        )

    return body


number = st.integers(0, 40)
fitting_acts = st.builds(
    fitting,
    st.sampled_from([do for do in SCHEMAS if do not in ("part", "relabel")]),
    reviewers,
    number,
    number,
    st.text("gull tern", min_size=1),
)
act_schema = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9a-f]{16,64}$"},
        "base": {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**53},
        "reviewer": {"type": "string", "maxLength": 40},
        "action": {},
    },
}
near_acts = st.builds(
    lambda act, action, chosen: act | ({"action": action} if chosen else {}),
    nearly_fits(act_schema),
    actions,
    st.booleans(),
)
exports = nearly_fits(ExportRequest.model_json_schema())


NOTHING = st.just({})


def asking(
    method: st.SearchStrategy[str],
    path: st.SearchStrategy[str],
    body: st.SearchStrategy[bytes | Body],
    extra: Any = NOTHING,
) -> st.SearchStrategy[Ask]:
    usual = {"host": HOST, "content-type": "application/json"}
    headers = extra.map(
        lambda more: [(name.encode(), value.encode("latin-1")) for name, value in (usual | more).items()]
    )
    return st.builds(Ask, method, path.map(lambda path: f"/{TOKEN}/{path}"), queries, headers, body)


empty, is_get, is_post = st.just(b""), st.just("GET"), st.just("POST")
paths = st.builds(lambda path, one, two: path.format(one, two), st.sampled_from(READS), part, part).map(
    lambda path: unquote(path, errors="replace")
)
requests = st.one_of(
    *[asking(is_post, st.just("act"), fitting_acts)] * 4,
    asking(is_post, st.just("act"), right_acts.map(as_json)),
    asking(is_post, st.just("act"), near_acts.map(as_json)),
    asking(is_post, st.sampled_from(["act", "export"]), ANYTHING.map(as_json) | st.binary(max_size=60)),
    asking(is_post, st.just("export"), exports.map(as_json)),
    asking(is_get, paths, empty),
    asking(
        st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"]),
        paths | st.sampled_from(["act", "export"]),
        right_acts.map(as_json) | empty,
        odd_headers,
    ),
)


class FuzzedServer:
    """All of the server but its socket."""

    def __init__(self, path: Path):
        self.run = make_run(path, per_class=8)
        # in a thread of its own: a browser of other tests may have a loop in this one
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def start_anew(self) -> OpenReview:
        shutil.rmtree(self.run.path / "review", ignore_errors=True)
        opened = OpenReview(self.run)
        self.app = Guard(make_app(opened, "anna"), Access("127.0.0.1", 80, TOKEN))
        return opened

    def wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def stop(self) -> None:
        self.wait_for(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def answer(self, ask: Ask) -> tuple[int, bytes]:
        """Status and body; what the server raises is raised here."""
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
            "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 9), "method": ask.method, "path": ask.path,
            "raw_path": quote(ask.path, errors="replace").encode(), "query_string": ask.query, "headers": ask.headers,
        }  # fmt: skip
        half = len(ask.body) // 2
        coming = [
            {"type": "http.request", "body": ask.body[:half], "more_body": True},
            {"type": "http.request", "body": ask.body[half:], "more_body": False},
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            return coming.pop(0) if coming else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        self.wait_for(self.app(scope, receive, send))
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[FuzzedServer]:
    server = FuzzedServer(tmp_path_factory.mktemp("fuzzed") / "run")
    yield server
    server.stop()


@given(drawn=st.lists(requests, min_size=12, max_size=40))
@budget(12)
def test_random_requests_lose_nothing_and_survive_a_restart(server, drawn):
    opened = server.start_anew()
    outside = {path: path.stat().st_mtime_ns for path in server.run.path.iterdir() if path.name != "review"}
    confirmed: dict[str, int] = {}
    for ask in drawn:
        ask = ask if isinstance(ask.body, bytes) else ask._replace(body=ask.body(opened))
        status, answer = server.answer(ask)
        assert 200 <= status < 500
        if status == 200 and ask.path.endswith("/act"):
            confirmed[json.loads(ask.body)["id"]] = json.loads(answer)["seq"]
    event(f"{min(len(confirmed), 10)} or more actions confirmed")
    before = facts(opened.state)
    assert {line.id: line.seq for line in before[0]} == confirmed
    assert facts(OpenReview(server.run).state) == before
    assert {path: path.stat().st_mtime_ns for path in server.run.path.iterdir() if path.name != "review"} == outside


def test_schemas_equal_those_of_the_server():
    of_request = Request.model_json_schema()["properties"]
    assert set(of_request) == set(act_schema["properties"])
    assert of_request["base"]["exclusiveMaximum"] == act_schema["properties"]["base"]["exclusiveMaximum"]
    assert of_request["id"]["pattern"] == act_schema["properties"]["id"]["pattern"]


@pytest.fixture(scope="module")
def live(tmp_path_factory) -> Iterator[LiveReview]:
    review = LiveReview(make_run(tmp_path_factory.mktemp("raw") / "run", per_class=8).path)
    review.start()
    yield review
    review.stop()


@given(damage=damages(), n=st.integers(0, 10**6), n_cut=st.integers(1, 400))
@budget(60)
def test_invalid_requests_do_not_change_the_server(live, damage, n, n_cut):
    token = live.url.split("/")[3]
    body = as_json({"id": f"{n:016x}", "base": 10**6, "reviewer": "anna", "action": {"do": "keep", "cluster": n % 9}})
    head = f"POST /{token}/act HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\nContent-Type: application/json\r\n"
    whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    with live.connect() as connection:
        try:
            connection.sendall(damaged(whole, damage)[: max(n_cut, len(whole) - n_cut)])
            connection.shutdown(1)
            while connection.recv(65536):
                pass
        except OSError:  # refused while it was sent
            pass
    n_logged = OpenReview(RunFolder.open(live.run)).state.seq
    with live.connect(f"GET /{token}/status HTTP/1.0\r\nHost: 127.0.0.1:{live.port}\r\n\r\n".encode()) as connection:
        answer = b""
        while data := connection.recv(65536):
            answer += data
    assert answer.startswith(b"HTTP/1.1 200")
    # one whole request may still be on its way into the log: what was there before the answer, the answer knows
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["seq"] >= n_logged
