"""Worker processes for tests in which a fresh interpreter is not the point: torch is imported once for all of them.

They, and the process that tests/forked_programs.py asks, are forked from a server that is started anew and has no
threads, not from the process of the tests; where several processes run tests, all of them ask one server. What is
started, killed, replaced and sent is as with fresh ones; tests/utils/test_parallel.py
and tests/bad_day/test_killed_worker.py start those.
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
"""Where a process finds the server of the one that started it: importing torch once more takes seconds."""


class Worker(ForkServerProcess):
    """A process with the environment of the one that asks for it, as if it had been spawned."""

    def __init__(self, *given: Any, **named: Any):
        super().__init__(*given, **named)
        self.variables = dict(os.environ)

    def run(self) -> None:
        """Do what it is there for."""
        os.environ.clear()
        os.environ.update(self.variables)
        super().run()


class Workers(ForkServerContext):
    """In place of the context that spawns."""

    Process = Worker


def context(method: str | None = None) -> BaseContext:
    """In place of `multiprocessing.get_context`."""
    if method != "spawn":
        return _get_context(method)
    workers = Workers()
    if SHARED in os.environ:
        forkserver.connect_to_new_process = SharedServer(os.environ[SHARED]).connect_to_new_process
        return workers
    workers.set_forkserver_preload(["tests.everything"])
    with contextlib.chdir(Path(__file__).parents[1]), _one_thread():  # where the server finds it, and has no threads
        forkserver.ensure_running()
    if sys.version_info < (3, 14):  # from then on, a server wants to be shown a key
        os.environ[SHARED] = forkserver._forkserver._forkserver_address
    return workers


class SharedServer(forkserver.ForkServer):
    """A server that another process has started, and that ends with it."""

    def __init__(self, address: str):
        super().__init__()
        self._forkserver_address = address
        self._forkserver_alive_fd = resource_tracker.getfd()  # any: nobody waits for its end

    def ensure_running(self) -> None:
        """It is running."""


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
