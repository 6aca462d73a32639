"""Trainings that are killed with SIGKILL at chosen moments, each in a process of its own.

Run as a program, it trains every method once undisturbed and once killed again and again. Its children are forked
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

FEW = [("building", 49), ("step", 7), ("recorded", 1), ("saving", 2)]
"""What a process is at when it is killed, and the how manieth of its kind since its start."""

MANY = [*FEW, ("step", 2), ("saving", 1), ("recording", 1), ("step", 8), ("step", 1)]

MOMENTS = {"gcd": FEW, "xcon": FEW, "simgcd": MANY, "mugcd": FEW * 2, "cms": FEW, "selex": FEW}
"""By method; muGCD is killed in its first stage, then in its second. All of them run the same loop."""

DELAY = 0.2
"""Seconds after which one more process is killed, wherever it is."""


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(what, number):
    """Make this process kill itself at a moment; return the arguments of `learned` for this."""
    counts = count(1)
    replacing, write = checkpoints.replacing, EpochRecords.write

    @contextmanager
    def replacing_or_dying(path):
        with replacing(path) as temporary:
            yield temporary
            if next(counts) == number:
                die()  # the file is there under its temporary name only

    def record_and_die(records, record):
        is_due = next(counts) == number
        if is_due and what == "recording":
            with records.path.open("a") as file:
                file.write('{"epoch": 1, "loss": 0.4')
            die()
        write(records, record)
        if is_due:
            die()

    def track(steps, total, said):
        for step in steps:
            yield step
            if said.startswith("computing" if what == "building" else "training") and next(counts) == number:
                die()

    if what == "saving":
        checkpoints.replacing = replacing_or_dying
    elif what in ("recording", "recorded"):
        EpochRecords.write = record_and_die
    else:
        return {"progress": track}
    return {}


def train(name, root, given, n_threads, moment=None):
    """Train on into root; a checkpoint comes every few steps, by a clock that ticks when it is asked."""
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
    assert wait(in_a_child(train, name, root / "undisturbed", given, 3)) == 0
    for moment in MOMENTS[name]:
        ended = wait(in_a_child(train, name, root / "killed", given, 1, moment))
        assert ended == -signal.SIGKILL, f"{moment} never came"
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
