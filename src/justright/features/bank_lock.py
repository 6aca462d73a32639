"""Who reads a view bank and who builds it: locks, so that none is taken from under a run, nor computed twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO


def hold(bank: Path) -> IO[str] | None:
    """Read a bank from now on until the file that comes back is closed, or its process ends, however that may be.

    Where files cannot be locked so (Windows) it is None, and nothing is removed unasked.
    """
    try:
        import fcntl
    except ImportError:
        return None
    while True:
        bank.mkdir(parents=True, exist_ok=True)
        file = _lock_file(bank).open("a")
        fcntl.flock(file, fcntl.LOCK_SH)  # waits while the bank is being removed
        if _lock_file(bank).exists():
            return file
        file.close()  # it was removed with the bank


@contextmanager
def alone(bank: Path) -> Iterator[bool]:
    """Whether nobody is known to read the bank; nobody begins to meanwhile. Without locks nobody is known."""
    try:
        import fcntl
    except ImportError:
        yield True
        return
    with _lock_file(bank).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


@contextmanager
def building(bank: Path) -> Iterator[None]:
    """Be the only one to build a bank: who comes second waits, and then finds what the first has built.

    Where files cannot be locked so (Windows), both build, and what they write is the same.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    bank.mkdir(parents=True, exist_ok=True)
    with (bank / "in-build").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process, however that may be
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # also for workers that were forked meanwhile


def is_known() -> bool:
    """Whether this system tells who reads a bank."""
    return find_spec("fcntl") is not None


def _lock_file(bank: Path) -> Path:
    return bank / "in-use"
