"""A real server in a separate process, which a test may kill."""

from __future__ import annotations

import json
import signal
import socket
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from tests.forked_programs import Program

from justright.review.security import ConnectionLimits

WITH_LIMITS = """
import json, sys
from pathlib import Path
from justright.review.security import ConnectionLimits
from justright.review.server import serve
from justright.review.open_review import OpenReview
from justright.runs.run_folder import RunFolder
opened, limits = OpenReview(RunFolder.open(Path(sys.argv[1]))), ConnectionLimits(**json.loads(sys.argv[2]))
serve(opened, "127.0.0.1", 0, "anna", lambda access: print(access.url, flush=True), limits)
"""


class LiveReview:
    """`justright review` of a run, with these limits; after a restart it listens on the same port."""

    def __init__(self, run: Path, limits: ConnectionLimits | None = None):
        self.run = run
        self.limits = limits
        self.port = 0
        self.process: Program | None = None
        self.url = ""

    def start(self) -> None:
        options = ["--port", str(self.port), "--quiet", "--reviewer", "anna"]
        words = ["review", str(self.run), *options]
        if self.limits:
            words = ["-c", WITH_LIMITS, str(self.run), json.dumps(asdict(self.limits))]
        self.process = Program(*words)
        self.url = self.process.line().strip()
        self.port = urlsplit(self.url).port or 0
        assert self.port, "the server did not start"

    def connect(self, sent: bytes = b"") -> socket.socket:
        """Open a connection and send these bytes."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(sent)
        return connection

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.end(seconds=10).code
