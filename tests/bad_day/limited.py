"""Commands under a limit on the size of files, each in a process of its own; what they said comes back as JSON.

Run as a program with a JSON list of [home, limit or null, words]. Its children are forked before torch has any thread,
so that torch is imported only once. They write to pipes, which have no limit.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import resource
import subprocess
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def call_all(calls: list[tuple[Path, int | None, list[object]]]) -> list[Ended]:
    """Carry out commands one after the other in one such program."""
    asked = json.dumps([[str(home), limit, [str(word) for word in words]] for home, limit, words in calls])
    command = [sys.executable, "-m", "tests.bad_day.limited"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, input=asked, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return [Ended(*each) for each in json.loads(done.stdout)]


def in_a_child(home: str, limit: int | None, words: list[str]) -> tuple[int, str, str]:
    """Fork, set the limit, and be the command."""
    out, err = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        for number, (_, end) in enumerate((out, err), start=1):
            os.dup2(end, number)
        for end in (*out, *err):
            os.close(end)
        os.environ["JUSTRIGHT_HOME"] = home
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        _be(words)
    os.close(out[1])
    os.close(err[1])
    said = os.fdopen(out[0]).read(), os.fdopen(err[0]).read()  # what is printed to both is short
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), *said


def _be(words: list[str]) -> None:
    """Be the command; torch takes seconds to be taken down in order, so it is not."""
    from justright.cli import main

    code = 1
    try:
        main(words, prog_name="justright")
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    import torch

    import justright

    for module in pkgutil.walk_packages(justright.__path__, "justright."):
        if not module.name.endswith(("__main__", "ray_engine")):
            importlib.import_module(module.name)
    torch.set_num_threads(1)
    sys.stdout.write(json.dumps([in_a_child(*each) for each in json.load(sys.stdin)]))
