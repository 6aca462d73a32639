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

SECONDS = 300  # a command that takes longer is killed


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Forked:
    """A running command. Its output goes to pipes, which the limit on file sizes does not affect.

    Parameters:
        words: the arguments of the command.
        home: the folder of its caches.
        folder: its working directory.
        limit: the largest size of a file, in bytes.
        prepare: called in the process before the command starts, with a function that reports an event to the parent.
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

            _run_command(words, prepare, tell)
        for end in (out[1], err[1], moments[1]):
            os.close(end)
        self.out, self.err = os.fdopen(out[0]), os.fdopen(err[0])
        self.moments = os.fdopen(moments[0], "rb", buffering=0)  # `select` does not see what a buffer has read

    def wait_for(self, moment: str) -> float | None:
        """The time at which the process reported this event; None if it ended before."""
        until = time.monotonic() + SECONDS
        while select.select([self.moments], [], [], max(0, until - time.monotonic()))[0]:
            line = self.moments.readline()
            if not line:
                return None
            if line == f"{moment}\n".encode():
                return time.monotonic()
        return None

    def kill(self) -> None:
        """Kill the process without a chance to clean up."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> Ended:
        """Wait for its end."""
        out, err = self.out.read(), self.err.read()  # both are short enough for a pipe
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        for each in (self.out, self.err, self.moments):
            each.close()
        return Ended(code, out, err)


def _run_command(words: list[str], prepare: Callable[..., None] | None, tell: Callable[[str], None]) -> None:
    """Run the command and exit at once: an orderly end of torch takes seconds."""
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
    """Import modules and compile templates, so that forked commands need not."""
    gc.disable()  # imported objects stay, so the collector would search them in vain
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
