"""Programs in processes of their own, for tests in which a fresh interpreter is not the point: torch is imported once.

A process that is forked from the server of tests/forked_workers.py is asked in JSON and answers in it. Its children are
forked before torch has any thread, and inherit all that is imported.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from benchmarks.forked import Ended, Forked
from tests.forked_workers import context

ROOT = Path(__file__).parents[1]


class Program:
    """A program that was started, by the words of a command, or by those of Python: -m MODULE ... or -c CODE ...

    Parameters:
        words: what it is called with.
        home: where it keeps its caches, if not where this process does.
        limit: bytes that a file which it writes may have.
        more: variables of its environment beside those of all such programs.
    """

    def __init__(
        self, *words: object, home: Path | None = None, limit: int | None = None, more: Mapping[str, str] | None = None
    ):
        variables = {"JUSTRIGHT_HOME": str(home or os.environ.get("JUSTRIGHT_HOME", "")), **(more or {})}
        self.pid: int = _ask("start", [str(word) for word in words], limit, variables)
        self.ended: Ended | None = None

    def line(self) -> str:
        """The next line that it prints; empty where it has ended."""
        return _ask("line", self.pid)

    def send_signal(self, number: int) -> None:
        """As `subprocess.Popen` does."""
        os.kill(self.pid, number)

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.ended is None and _ask("is running", self.pid)

    def end(self, seconds: float | None = None) -> Ended:
        """Wait for its end, no longer than so many seconds."""
        until = time.monotonic() + (seconds or 0)
        while seconds is not None and self.is_running():
            if time.monotonic() > until:
                raise AssertionError(f"it did not end within {seconds} seconds: {self.kill()}")
            time.sleep(0.01)
        self.ended = self.ended or Ended(*_ask("end", self.pid))
        return self.ended

    def kill(self) -> Ended:
        """End it at once, if it has not ended yet."""
        if self.ended is None:
            self.send_signal(signal.SIGKILL)
        return self.end()


def _ask(*request: object) -> Any:
    asked = _starter()
    asked.send_bytes(json.dumps(request).encode())
    return json.loads(asked.recv_bytes())


@cache
def _starter() -> Connection:
    ours, theirs = Pipe()
    process = context("spawn").Process(target=_serve, args=(theirs,))
    process.variables |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    process.start()
    theirs.close()  # so that the end of the process is the end of what it answers
    atexit.register(process.join)
    atexit.register(ours.close)  # before, which ends the process
    return ours


def _prepared(words: list[str], variables: dict[str, str]) -> Callable[[object], None]:
    """What a child does before it would be a command of justright; words for Python it carries out here."""

    def prepare(tell: object) -> None:
        os.environ.update(variables)
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        elif words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            exec(compile(words[1], "<given>", "exec"), {"__name__": "__main__"})
        else:
            return
        sys.exit()

    return prepare


def _answer(running: dict[int, Forked], what: str, *given: Any) -> Any:
    if what == "start":
        words, limit, variables = given
        home = Path(variables["JUSTRIGHT_HOME"])
        program = Forked(words, home, limit=limit, prepare=_prepared(words, variables))
        running[program.pid] = program
        return program.pid
    (pid,) = given
    if what == "line":
        return running[pid].out.readline()
    if what == "is running":
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    return running.pop(pid).end()


def _serve(asked: Connection) -> None:
    os.chdir(ROOT)
    running: dict[int, Forked] = {}
    while True:
        try:
            request = asked.recv_bytes()
        except EOFError:  # the tests are over
            return
        asked.send_bytes(json.dumps(_answer(running, *json.loads(request))).encode())
