"""Locks on open files, which end with their process, however that ends. Windows has none of this kind."""

from __future__ import annotations

from importlib.util import find_spec
from typing import IO, Any


def has_locks() -> bool:
    """Whether this system can lock files so."""
    return find_spec("fcntl") is not None


def lock(file: IO[Any], *, is_shared: bool = False, waits: bool = True) -> bool:
    """Lock an open file until it is closed: for this process alone, or shared with others that ask for that.

    False where another process holds it and this one does not wait. Without locks it is always True.
    """
    if not has_locks():
        return True
    import fcntl

    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind if waits else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(file: IO[Any]) -> None:
    """End the lock before the file is closed, also for workers that were forked meanwhile."""
    if has_locks():
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)
