"""The review stage of the soak: page and export must show every confirmed action."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.forked import Ended
from benchmarks.soak_stages import Results, Stage, start

PAGES = ("about", "clusters", "clusters/{}/images", "clusters/{}/near", "images/0/160", "images/1/160")
ACTIONS: list[dict[str, Any]] = [
    {"do": "keep", "cluster": 0},
    {"do": "name", "cluster": 1, "name": "gull"},
    {"do": "merge", "cluster": 2, "into": 3},
    {"do": "discard", "cluster": 3},
    {"do": "undo", "target": None},
    {"do": "name", "cluster": 0, "name": "tern"},
    {"do": "keep", "cluster": 3},
    {"do": "keep", "cluster": 1},
]
"""Clusters by their place among those that have images."""
N_PREPARED = 3


class ReviewServer:
    """`justright review` until the end of a with block; `url` is empty if it did not start."""

    def __init__(self, folder: Path, limit: int | None = None):
        words = ["review", "run", "--port", "0", "--quiet", "--reviewer", "anna"]
        self.process = start(folder, words, limit)
        self.url = self.process.out.readline().strip()
        self.ended = Ended(0, "", "")

    def ask(self, path: str, body: dict[str, Any] | None = None) -> http.client.HTTPConnection:
        """A connection with a sent request."""
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
        sent = None if body is None else json.dumps(body)
        headers = {"content-type": "application/json"}
        connection.request("GET" if body is None else "POST", f"{where.path}{path}", sent, headers)
        return connection

    def answer(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Status and body."""
        connection = self.ask(path, body)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def __enter__(self) -> ReviewServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.ended = self.process.end()


@dataclass
class ReviewStage(Stage):
    """Some actions are prepared; a kill comes during a later one."""

    n_answered: int = 0
    n_sent: int = 0
    after: list[Results] = field(default_factory=list)  # the results after each number of actions
    pages: Results = field(default_factory=dict)
    clusters: list[int] = field(default_factory=list)

    def begin(self) -> None:
        self.n_answered = self.n_sent = N_PREPARED

    def clear(self, folder: Path) -> None:
        super().clear(folder)
        self.n_answered = self.n_sent = 0

    def kill(self, folder: Path, part: float) -> None:
        with ReviewServer(folder) as server:
            n_whole, delay = divmod(part * (len(ACTIONS) - self.n_sent), 1)
            if server.url and not self._act(server, int(n_whole)) and self.n_sent < len(ACTIONS):
                connection = server.ask("act", self._next())
                time.sleep(0.02 * delay)
                server.process.kill()
                connection.close()

    def finish(self, folder: Path, limit: int | None = None) -> Ended:
        """Send one more action, load the pages, and export."""
        return self._finish(folder, limit, n_more=1)

    def _finish(self, folder: Path, limit: int | None, n_more: int) -> Ended:
        with ReviewServer(folder, limit) as server:
            problem = self._look(server, n_more) if server.url else ""
        if problem or not server.url:
            return Ended(1, "", problem + server.ended.err)
        ended = start(folder, self.words, limit).end()
        return Ended(ended.code, ended.out, server.ended.err + ended.err)

    def _look(self, server: ReviewServer, n_more: int) -> str:
        """Send `n_more` actions and load the pages. Returns the error, or an empty text."""
        if problem := self._act(server, n_more):
            return problem
        answers = {page: server.answer(page.format(self.clusters[0])) for page in PAGES}
        self.pages = {page: body for page, (_, body) in answers.items()}
        return " ".join(body.decode() for status, body in answers.values() if status != 200)

    def _act(self, server: ReviewServer, n: int) -> str:
        """Send the next actions. Returns the error of the first that fails, or an empty text."""
        status, body = server.answer("status")
        if status != 200:
            return body.decode()
        n_there = int(json.loads(body)["seq"])
        if not self.n_answered <= n_there <= self.n_sent:
            return f"Traceback: {n_there} actions are there, {self.n_answered} to {self.n_sent} should be"
        self.n_answered = self.n_sent = n_there
        for _ in range(min(n, len(ACTIONS) - self.n_sent)):
            status, body = server.answer("act", self._next())
            if status != 200:
                return body.decode()
            self.n_answered += 1
        return ""

    def _next(self) -> dict[str, Any]:
        """The next action as the page sends it."""
        number, self.n_sent = self.n_sent, self.n_sent + 1
        action = ACTIONS[number] | {
            each: self.clusters[ACTIONS[number][each]] for each in ("cluster", "into") if each in ACTIONS[number]
        }
        return {"id": f"{number:016x}", "base": number, "reviewer": "anna", "action": action}

    def results(self, folder: Path, ended: Ended) -> Results:
        return super().results(folder, ended) | self.pages

    def fits(self, found: Results) -> bool:
        self.expected = self.after[self.n_answered]
        return found in self.after[self.n_answered : self.n_sent + 1]

    def learn(self, folder: Path) -> None:
        """Learn the results after each number of actions; then prepare the first `N_PREPARED`."""
        self.clear(folder)
        with ReviewServer(folder) as server:
            self.clusters = sorted(each["cluster"] for each in json.loads(server.answer("clusters")[1])["clusters"])
            for n in range(len(ACTIONS) + 1):
                problem, ended = self._look(server, n_more=int(n > 0)), start(folder, self.words).end()
                assert (problem, ended.code) == ("", 0), (problem, ended)
                self.after.append(self.results(folder, ended))
        self.clear(folder)
        self._finish(folder, None, N_PREPARED)
        self.n_bytes = 50_000


def review_stage() -> Stage:
    """The stage of the soak."""
    words = ["review", "run", "--export", "labels.csv"]
    reads = r"run/(review|run\.json|predictions|target\.parquet|tuned)"
    return ReviewStage("review", words, ["run/review", "labels.csv"], reads, ["labels.csv"], shows_parts=True)
