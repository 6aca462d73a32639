"""Worker processes for tests that do not need a fresh interpreter: torch is imported once for all of them.

They are forked from a server without threads, not from the process of the tests. If several processes run tests, all
use one server. tests/forked_programs.py uses it too. Such workers are started, killed, replaced and supplied with work
like fresh ones, which tests/utils/test_parallel.py and tests/bad_day/test_killed_worker.py start.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import BaseContext, ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

SHARED = "JUSTRIGHT_FORK_SERVER_OF_TESTS"
"""The variable with the address of the server, for child processes: importing torch again takes seconds."""


class Worker(ForkServerProcess):
    """A process with the environment of its parent, as if it had been spawned."""

    def __init__(self, *given: Any, **named: Any):
        super().__init__(*given, **named)
        self.variables = dict(os.environ)

    def run(self) -> None:
        """Run the target."""
        os.environ.clear()
        os.environ.update(self.variables)
        super().run()


class Workers(ForkServerContext):
    """Replaces the context that spawns processes."""

    Process = Worker


def context(method: str | None = None) -> BaseContext:
    """Replaces `multiprocessing.get_context`."""
    if method != "spawn":
        return _get_context(method)
    workers = Workers()
    if SHARED in os.environ:
        forkserver.connect_to_new_process = SharedServer(os.environ[SHARED]).connect_to_new_process
        return workers
    workers.set_forkserver_preload(["tests.everything"])
    with contextlib.chdir(Path(__file__).parents[1]), _one_thread():  # there the server can import it
        forkserver.ensure_running()
    if sys.version_info < (3, 14):  # newer servers require a key
        os.environ[SHARED] = forkserver._forkserver._forkserver_address
    return workers


class SharedServer(forkserver.ForkServer):
    """A server that another process has started and will end."""

    def __init__(self, address: str):
        super().__init__()
        self._forkserver_address = address
        self._forkserver_alive_fd = resource_tracker.getfd()  # any descriptor: no code waits for its end

    def ensure_running(self) -> None:
        """Nothing to do: it is running."""


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    name = "OMP_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


_get_context = multiprocessing.get_context
