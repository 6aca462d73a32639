"""Commands with or without a limit on the size of files, each in a process of its own; what they said comes back.

Run as a program that reads a line [home, limit or null, words] after the other as JSON, and answers each with a line.
Its children are forked before torch has any thread, so that torch is imported once for all tests of a test run.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from benchmarks.forked import Ended, Forked, import_everything

ROOT = Path(__file__).parents[2]


def call_all(calls: list[tuple[Path, int | None, list[object]]]) -> list[Ended]:
    """Carry out commands one after the other."""
    return [call_limited(home, limit, *words) for home, limit, words in calls]


def call_limited(home: Path, limit: int | None, *words: object) -> Ended:
    """Carry out a command; no file that it writes may have more bytes than the limit."""
    program = _program()
    program.stdin.write(json.dumps([str(home), limit, [str(word) for word in words]]) + "\n")
    program.stdin.flush()
    answer = program.stdout.readline()
    assert answer, "the program that starts commands has ended"
    return Ended(*json.loads(answer))


@cache
def _program() -> subprocess.Popen[str]:
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.bad_day.limited"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        text=True,
    )
    atexit.register(program.communicate)  # which ends its input, and so the program
    return program


if __name__ == "__main__":
    import_everything()
    asked = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what is asked next is not for the commands to read
    for line in asked:
        home, limit, words = json.loads(line)
        sys.stdout.write(json.dumps(Forked(words, Path(home), limit=limit).end()) + "\n")
        sys.stdout.flush()
