"""Programs in processes of their own, for tests that do not need a fresh interpreter: torch is imported once.

A process forked from the server of tests/forked_workers.py receives requests as JSON and answers with JSON. It forks
the programs before torch has any thread, and they inherit all imported modules.
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
    """A started program: arguments of justright, or of Python: -m MODULE ... or -c CODE ...

    Parameters:
        words: the arguments.
        home: the folder of its caches; by default that of this process.
        limit: the largest size of a file that it writes, in bytes.
        more: further environment variables.
    """

    def __init__(
        self, *words: object, home: Path | None = None, limit: int | None = None, more: Mapping[str, str] | None = None
    ):
        variables = {"JUSTRIGHT_HOME": str(home or os.environ.get("JUSTRIGHT_HOME", "")), **(more or {})}
        self.pid: int = _ask("start", [str(word) for word in words], limit, variables)
        self.ended: Ended | None = None

    def line(self) -> str:
        """The next line that it prints; empty after its end."""
        return _ask("line", self.pid)

    def send_signal(self, number: int) -> None:
        """Send a signal, as `subprocess.Popen.send_signal` does."""
        os.kill(self.pid, number)

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.ended is None and _ask("is running", self.pid)

    def end(self, seconds: float | None = None) -> Ended:
        """Wait for its end; AssertionError if it takes more than this many seconds."""
        until = time.monotonic() + (seconds or 0)
        while seconds is not None and self.is_running():
            if time.monotonic() > until:
                raise AssertionError(f"it did not end within {seconds} seconds: {self.kill()}")
            time.sleep(0.01)
        self.ended = self.ended or Ended(*_ask("end", self.pid))
        return self.ended

    def kill(self) -> Ended:
        """Kill it, if it has not ended yet."""
        if self.ended is None:
            self.send_signal(signal.SIGKILL)
        return self.end()


def _ask(*request: object) -> Any:
    starter = _starter()
    starter.send_bytes(json.dumps(request).encode())
    return json.loads(starter.recv_bytes())


@cache
def _starter() -> Connection:
    ours, theirs = Pipe()
    process = context("spawn").Process(target=_serve, args=(theirs,))
    process.variables |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    process.start()
    theirs.close()  # so that reading ends with the process
    atexit.register(process.join)
    atexit.register(ours.close)  # runs before the line above, and ends the process
    return ours


def _prepared(words: list[str], variables: dict[str, str]) -> Callable[[object], None]:
    """Prepare a child, which then runs a command of justright; arguments of Python are run here instead."""

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


def _serve(requests: Connection) -> None:
    os.chdir(ROOT)
    running: dict[int, Forked] = {}
    while True:
        try:
            request = requests.recv_bytes()
        except EOFError:  # the tests have ended
            return
        requests.send_bytes(json.dumps(_answer(running, *json.loads(request))).encode())
