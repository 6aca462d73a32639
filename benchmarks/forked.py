"""Run commands in processes forked from one that has imported everything, so that they start in milliseconds.

The parent must not compute with torch or read with pyarrow, for their threads do not survive a fork.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SECONDS = 300
"""A command that takes longer is ended by a signal."""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Forked:
    """A command on its way; it writes to pipes, which no limit on files touches.

    Parameters:
        words: of the command.
        home: where it keeps its caches.
        folder: where it runs.
        limit: bytes that a file may have.
        prepare: called in the process before the command begins, with what tells the parent of a moment.
    """

    def __init__(
        self,
        words: list[str],
        home: Path,
        folder: Path | None = None,
        limit: int | None = None,
        prepare: Callable[[Callable[[str], None]], None] | None = None,
    ):
        out, err, moments = os.pipe(), os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            for number, (_, end) in enumerate((out, err), start=1):
                os.dup2(end, number)
            for end in (*out, *err, moments[0]):
                os.close(end)
            os.environ["JUSTRIGHT_HOME"] = str(home)
            signal.alarm(SECONDS)
            if folder is not None:
                os.chdir(folder)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

            def tell(name: str) -> None:
                os.write(moments[1], f"{name}\n".encode())

            _be(words, prepare, tell)
        for end in (out[1], err[1], moments[1]):
            os.close(end)
        self.out, self.err = os.fdopen(out[0]), os.fdopen(err[0])
        self.moments = os.fdopen(moments[0], "rb", buffering=0)  # what is read ahead, `select` would not see

    def wait_for(self, moment: str) -> float | None:
        """When the process reached this moment; None if it ended before."""
        until = time.monotonic() + SECONDS
        while select.select([self.moments], [], [], max(0, until - time.monotonic()))[0]:
            line = self.moments.readline()
            if not line:
                return None
            if line == f"{moment}\n".encode():
                return time.monotonic()
        return None

    def kill(self) -> None:
        """End it as a power cut would end its process."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> Ended:
        """Wait for its end."""
        out, err = self.out.read(), self.err.read()  # what is printed to both is short
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        for each in (self.out, self.err, self.moments):
            each.close()
        return Ended(code, out, err)


def _be(words: list[str], prepare: Callable[..., None] | None, tell: Callable[[str], None]) -> None:
    """Be the command; torch takes seconds to be taken down in order, so it is not."""
    from justright.cli import main

    code = 1
    try:
        sys.argv = ["justright", *words]
        if prepare is not None:
            prepare(tell)
        tell("start")
        main(words, prog_name="justright")
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def import_everything() -> None:
    """What a forked command would else import each time, and templates that it would compile."""
    gc.disable()  # what is imported stays: looking through it again and again, here and in commands, finds nothing
    import torch
    from PIL import Image

    import justright

    for module in pkgutil.walk_packages(justright.__path__, "justright."):
        if not module.name.endswith(("__main__", "ray_engine")):
            importlib.import_module(module.name)
    for name in ("ot", "sklearn.cluster", "sklearn.metrics", "pyarrow.dataset"):
        importlib.import_module(name)
    from justright.report.elements import environment
    from justright.utils.parallel import blas_threads

    for template in environment().list_templates():
        environment().get_template(template)
    Image.init()
    torch.set_num_threads(1)
    blas_threads(1)
    gc.freeze()
    gc.enable()
