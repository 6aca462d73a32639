"""Locks between processes, on one machine or on several that share a file system.

`Lock` is exclusive: one process builds a bank, writes a store or owns the folder of a run. It is a lock of the
operating system (package filelock), which ends with its process.

`ReaderLease` says that a process reads a folder, so that no other deletes it. Any number of processes may hold one. It
is a file whose name identifies machine, process and the start time of the process, and whose modification time is
renewed every `HEARTBEAT` seconds. A lease is stale if its process has ended. The process of another machine cannot be
looked up: its lease is stale if it was not renewed for `EXPIRY` seconds. Temporary files are named in the same way.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import threading
import time
import uuid
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

_log = logging.getLogger(__name__)

HEARTBEAT = 20.0  # seconds
EXPIRY = 300.0  # seconds: longer than NFS clients cache times (60), and than a computation blocks other threads
ENDED = "ended"
WRITER = re.compile(r"^\..+\.(?P<host>[\w-]+)~(?P<process>\d+)~(?P<started>\d+)~[0-9a-f]{16}\.(?:tmp|lease)$")


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
        about = f"{os.getpid()}\n{socket.gethostname()}\n{datetime.now():%Y-%m-%d %H:%M:%S}\n"
        try:
            path.write_text(about, encoding="utf-8")
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


class ReaderLease:
    """Marks `folder` as being read until `release`, or until the process ends."""

    def __init__(self, folder: Path):
        self._process, self._stop = os.getpid(), threading.Event()
        guard = Lock(_guard(folder), wait=True)  # waits while the folder is being deleted
        try:
            self.path = folder.with_name(f".{folder.name}.in-use.{writer_name()}.lease")
            self.path.touch()
        finally:
            guard.release()
        threading.Thread(target=_renew, args=(self.path, self._stop), daemon=True).start()

    def release(self) -> None:
        """End the lease. Does nothing in a forked process: the lease is the parent's."""
        if os.getpid() == self._process:
            self._stop.set()
            self.path.unlink(missing_ok=True)


def lock_unread(folder: Path) -> Lock | None:
    """Lock a folder that nobody reads, so that it can be deleted; None if it is read. New readers wait for release."""
    try:
        guard = Lock(_guard(folder))
    except LockedError:
        return None
    now = _time_of(guard.path)  # by the clock of the file system, as the times of the leases
    readers = [path for path in folder.parent.glob(f".{folder.name}.in-use.*.lease") if not is_gone(path, EXPIRY, now)]
    if not readers:
        return guard
    guard.release()
    return None


def _guard(folder: Path) -> Path:
    """The lock that new readers and whoever deletes the folder hold for a moment; it lies beside the folder."""
    return folder.with_name(f".{folder.name}.guard")


def _renew(path: Path, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT):
        with suppress(OSError):  # released just now
            os.utime(path)


def writer_name() -> str:
    """A new name for a file of this process: machine, process, start of the process, random letters."""
    process = os.getpid()
    return f"{_host()}~{process}~{_started(process) or 0}~{secrets.token_hex(8)}"


def is_gone(path: Path, expiry: float, now: float | None = None) -> bool:
    """Whether the process that made a file has ended; for one of another machine, whether the file is too old."""
    match = WRITER.search(path.name)
    if match is not None and match["host"] == _host() and os.name == "posix":
        return not _is_running(int(match["process"]), match["started"])
    return (time.time() if now is None else now) - _time_of(path) > expiry


def _holder(path: Path) -> str:
    """The process that holds a lock, and since when."""
    try:
        process, host, since = path.read_text(encoding="utf-8").splitlines()
        return f"process {process}{'' if host == socket.gethostname() else f' on {host}'} since {since}"
    except (OSError, ValueError):  # it has acquired the lock just now
        return "another process"


def _time_of(path: Path) -> float:
    """The modification time of a file; 0 if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


@cache
def _host() -> str:
    """This machine since its start. A container has process ids of its own, so it counts as another machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").replace("-", "")[:16]
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:  # not Linux
        boot, namespace = f"{uuid.getnode():x}", 0
    return f"{re.sub(r'[^A-Za-z0-9-]', '-', socket.gethostname())[:24]}-{boot}-{namespace:x}"


def _is_running(process: int, started: str) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # the latter: no process has so large an id
        return False
    except PermissionError:  # a process of another user
        pass
    return _started(process) in (started, None)


def _started(process: int) -> str | None:
    """When a process started, in ticks since the machine did; None if the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return ENDED if fields[0] in (b"Z", b"X") else fields[19].decode()  # a zombie has ended
