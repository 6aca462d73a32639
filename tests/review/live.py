"""A real server in a process of its own, which a test may kill, and a page of it in a real browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit


class LiveReview:
    """`justright review` of a run; started again it listens on the same port."""

    def __init__(self, run: Path):
        self.run = run
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        command = [sys.executable, "-m", "justright", "review", str(self.run), "--port", str(self.port), "--quiet"]
        self.process = subprocess.Popen([*command, "--reviewer", "anna"], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self.port = urlsplit(self.url).port or 0
        assert self.port, "the server did not start"

    def kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()
            self._close()

    def _close(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.stdout.close()
