"""Commands under a limit on the size of files, each in a process of its own; what they said comes back as JSON.

Run as a program with a JSON list of [home, limit or null, words]. Its children are forked before torch has any thread,
so that torch is imported only once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.forked import Ended, Forked, import_everything

ROOT = Path(__file__).parents[2]


def call_all(calls: list[tuple[Path, int | None, list[object]]]) -> list[Ended]:
    """Carry out commands one after the other in one such program."""
    asked = json.dumps([[str(home), limit, [str(word) for word in words]] for home, limit, words in calls])
    command = [sys.executable, "-m", "tests.bad_day.limited"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, input=asked, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return [Ended(*each) for each in json.loads(done.stdout)]


if __name__ == "__main__":
    import_everything()
    asked = json.load(sys.stdin)
    ended = [Forked(words, Path(home), limit=limit).end() for home, limit, words in asked]
    sys.stdout.write(json.dumps(ended))
