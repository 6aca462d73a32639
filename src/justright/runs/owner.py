"""A lock on a folder that is held by the one process that writes to it, and that ends with the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from justright.utils.errors import JustrightError
from justright.utils.files import explain_disk_full
from justright.utils.locks import Lock, LockedError

LOCK = ".owner"  # the lock file in the folder; it is deleted when the work is done


class OwnedError(JustrightError):
    """Another process is writing to the folder."""


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Lock the folder for writing, and create it if it does not exist; OwnedError if another process holds the lock."""
    was_there = folder.exists()
    try:
        with explain_disk_full(folder / LOCK):
            lock = Lock(folder / LOCK)
    except LockedError as error:
        raise OwnedError(
            f"{folder} is being written by {error}",
            expected="one process at a time",
            advice="wait for it, stop it, or name another --out",
        ) from error
    try:
        yield
    finally:
        lock.release()
        if not was_there:
            with suppress(OSError):  # stays unless it is empty
                folder.rmdir()
