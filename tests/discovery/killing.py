"""Trainings that are killed with SIGKILL at chosen moments, each in a process of its own.

Run as a program, it trains every method once without interruption and once with many kills. Its children are forked
before torch has any thread, so that torch is imported only once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import torch
from tests.discovery.tiny import backbone_of_noise, drawn_split, learned

from justright.discovery import checkpoints, loop
from justright.discovery.checkpoints import EpochRecords
from justright.features import bank

FEW = [("building", 49), ("step", 7), ("recorded", 2), ("saving", 2)]
"""The event at which a process is killed, and its number among the events of this kind since the process started."""

MANY = [*FEW, ("step", 2), ("saving", 1), ("recording", 2), ("step", 8), ("step", 1)]

MOMENTS = {"gcd": FEW, "xcon": FEW, "simgcd": MANY, "mugcd": FEW * 2, "cms": FEW, "selex": FEW}
"""By method; muGCD is killed in its first stage, then in its second. All methods use the same loop."""

DELAY = 0.2
"""Seconds after which one more process is killed, at any event."""


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(what, number):
    """Make this process kill itself at a moment; return the arguments of `learned` for this."""
    counts = count(1)
    replacing, write = checkpoints.replacing, EpochRecords.write

    @contextmanager
    def replacing_or_killed(path):
        with replacing(path) as temporary:
            yield temporary
            if next(counts) == number:
                kill_self()  # the file is there under its temporary name only

    def record_or_killed(file, records):  # the first call is at the start of a training
        is_due = next(counts) == number
        if is_due and what == "recording":
            with file.path.open("a") as opened:
                opened.write('{"epoch": 1, "loss": 0.4')
            kill_self()
        write(file, records)
        if is_due:
            kill_self()

    def track(steps, total, name):
        for step in steps:
            yield step
            if name.startswith("computing" if what == "building" else "training") and next(counts) == number:
                kill_self()

    if what == "saving":
        checkpoints.replacing = replacing_or_killed
    elif what in ("recording", "recorded"):
        EpochRecords.write = record_or_killed
    else:
        return {"progress": track}
    return {}


def train(name, root, given, n_threads, moment=None):
    """Train into root, with a checkpoint every few steps: the clock advances by 1 at each call."""
    ticks = count()
    loop.time = type("Clock", (), {"monotonic": staticmethod(lambda: float(next(ticks)))})
    loop.CHECKPOINT_SECONDS = 3.5
    bank.n_cores = lambda: n_threads  # as many threads draw views
    options = {} if moment is None else arm(*moment)
    model = learned(name, *given, root / "banks", root / "run", seed=1, n_epochs=3, **options)
    model.save(root / "model")


def in_a_child(work, *arguments):
    pid = os.fork()
    if pid:
        return pid
    try:
        work(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def wait(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_and_resume(name, root, given):
    assert wait(in_a_child(train, name, root / "uninterrupted", given, 3)) == 0
    for moment in MOMENTS[name]:
        ended = wait(in_a_child(train, name, root / "killed", given, 1, moment))
        assert ended == -signal.SIGKILL, f"not killed at {moment}"
    pid = in_a_child(train, name, root / "killed", given, 1)
    time.sleep(DELAY)
    os.kill(pid, signal.SIGKILL)
    wait(pid)
    assert wait(in_a_child(train, name, root / "killed", given, 2)) == 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    given = drawn_split(per_class=12), backbone_of_noise()
    for method in MOMENTS:
        kill_and_resume(method, Path(sys.argv[1]) / method, given)
