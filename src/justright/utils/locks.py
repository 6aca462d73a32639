"""Locks between processes, on one machine or on several that share a file system. They end with their process.

`Lock` is exclusive: one process builds a bank, writes a store or owns the folder of a run (package filelock).
`lock_file` and `locked_file` lock a file that is read or written: any number of readers, or one writer.
"""

from __future__ import annotations

import logging
import os
import socket
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

try:
    import fcntl
except ImportError:  # Windows, which does not delete or replace open files anyway
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None  # whether `lock_file` locks
_log = logging.getLogger(__name__)


class LockedError(Exception):
    """Another process holds the lock; the message names it."""


class Lock:
    """An exclusive lock, held from its creation until `release`, or until the process ends.

    `path` is a file that exists while the lock is held. If another process holds it, LockedError is raised, or with
    `wait` a warning is logged and the call blocks.
    """

    def __init__(self, path: Path, *, wait: bool = False):
        self.path, self._process = path, os.getpid()
        self._lock = FileLock(path, thread_local=False)
        if not self._acquire(blocking=False):
            holder = _holder(path)
            if not wait:
                raise LockedError(holder)
            _log.warning("%s is used by %s: waiting until it is done", path.parent, holder)
            self._acquire(blocking=True)
        holder = f"{os.getpid()}\n{socket.gethostname()}\n{datetime.now():%Y-%m-%d %H:%M:%S}\n"
        try:
            path.write_text(holder, encoding="utf-8")
        except OSError:
            self.release()
            raise

    def _acquire(self, *, blocking: bool) -> bool:
        while True:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another process has removed the folder just now
                try:
                    self._lock.acquire(blocking=blocking)
                except Timeout:
                    return False
                return True

    def release(self) -> None:
        """Release the lock and delete its file. Does nothing in a forked process: the lock is the parent's."""
        if os.getpid() == self._process:
            with suppress(OSError):  # Windows deletes no open file
                self.path.unlink()  # before the release: a process that waits notices that its file is gone
            self._lock.release()


def _holder(path: Path) -> str:
    """The process that holds a lock, and since when."""
    try:
        process, host, since = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # it has acquired the lock just now
        return "another process"
    where = "" if host == socket.gethostname() else f" on {host}"
    return f"process {process}{where} since {since}"


def lock_file(file: IO[Any], *, is_shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file until it is closed; False if another process holds it and `wait` is False. Not on Windows.

    OSError if the file system has no locks.
    """
    if HAS_LOCKS:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
    return True


def locked_file(path: Path, *, is_shared: bool = False, wait: bool = True) -> IO[Any] | None:
    """Open a file, created if it is missing, and lock it until it is closed; None if another process holds it.

    A file system without locks counts as locked by another process, or with `wait` the file stays unlocked.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another process has removed the folder just now
            file = path.open("a+b")
            try:
                is_locked = lock_file(file, is_shared=is_shared, wait=wait)
            except OSError:
                is_locked = wait
            if not is_locked:
                file.close()
                return None
            if _is_at(path, file):
                return file
            file.close()  # another process has deleted the file while this one waited


def _is_at(path: Path, file: IO[Any]) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    return False
