"""Leases: files that say which process uses a folder or writes a file, on this machine or on another.

The name of a lease holds the machine, the process, the time that the process started, and random letters. So no two
have one name, also in containers where every process has the id 1. While a lease is held, its modification time is
renewed every `HEARTBEAT` seconds. It has ended when its process has, or, where that cannot be looked up because it runs
elsewhere, when it was not renewed for `EXPIRY` seconds. Temporary files are named and renewed in the same way.

Nothing here asks more of a file system than new files, listings and times. Locks of the operating system (flock) are
not reliable on network file systems, and Windows has none that can be shared.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

_log = logging.getLogger(__name__)

HEARTBEAT = 20.0  # seconds
EXPIRY = 300.0  # seconds: longer than clients of NFS keep old times (60), and than a computation keeps threads waiting
ALONE, SHARED, ENDED = "alone", "shared", "ended"
WRITER = re.compile(r"^\..+\.(?P<host>[\w-]+)~(?P<process>\d+)~(?P<started>\d+)~[0-9a-f]{16}\.(?:tmp|lease)$")

Wait = Literal["never", "unsure", "always"]
"""Wait for a lease that is held: never, only while it is not known whether its process still runs, or in any case."""


class LeaseHeldError(Exception):
    """Another process holds the lease; the message says which one."""


class Lease:
    """A lease that this process holds until `release`, or until it ends."""

    def __init__(self, path: Path):
        self.path, self._process = path, os.getpid()
        _heartbeat.add(path)

    def release(self) -> None:
        """Give it back. In a forked process nothing happens: the lease is the parent's."""
        if os.getpid() == self._process:
            _heartbeat.remove(self.path)
            self.path.unlink(missing_ok=True)


def lease(place: Path, *, is_shared: bool = False, wait: Wait = "unsure") -> Lease:
    """Hold `place`, which need not exist: alone, or together with others that share it. LeaseHeldError if it is taken.

    It is held if no other lease is there once the own file is. Otherwise the file is removed and written again later,
    so of two that come at once both may step back, but they never hold it both.
    """
    seen: dict[Path, float] = {}
    pause, is_told = 0.05, False
    while True:
        mine = _written(place, is_shared)
        now = _time_of(mine)  # by the clock of the file system, as the times of the others
        shared, alone = f"{place.name}.{SHARED}.", f"{place.name}.{ALONE}."
        others = [other for other in place.parent.iterdir() if other.name.startswith((shared, alone)) and other != mine]
        others = [other for other in others if not _removed_if_gone(other, now)]
        others = [other for other in others if not (is_shared and other.name.startswith(shared))]
        if not others:
            return Lease(mine)
        mine.unlink(missing_ok=True)
        holder, held = _said(others[0]), [other for other in others if other in seen]  # not only tried for a moment
        is_running = any(_is_local(other) or _time_of(other) > seen[other] for other in held)
        if wait == "never" or (wait == "unsure" and is_running):
            raise LeaseHeldError(holder)
        if held and not is_told:
            why = "to see whether it still runs" if wait == "unsure" else "until it is done"
            _log.warning("%s is used by %s: waiting %s", place.parent, holder, why)
            is_told = True
        seen = {other: seen.get(other, _time_of(other)) for other in others}
        time.sleep(pause + secrets.randbelow(100) / 1000)
        pause = min(2 * pause, 1.0)


@contextmanager
def renewed(path: Path) -> Iterator[None]:
    """Renew the modification time of a file that is being written."""
    _heartbeat.add(path)
    try:
        yield
    finally:
        _heartbeat.remove(path)


def writer_name() -> str:
    """A new name for a file of this process: machine, process, start of the process, random letters."""
    process = os.getpid()
    return f"{_host()}~{process}~{_started(process) or 0}~{secrets.token_hex(8)}"


def is_gone(path: Path, expiry: float, now: float | None = None) -> bool:
    """Whether the process that made a file has ended; on another machine: whether it was silent for so many seconds."""
    if _is_local(path):
        found = WRITER.search(path.name)
        return found is not None and not _is_running(int(found["process"]), found["started"])
    return (time.time() if now is None else now) - _time_of(path) > expiry


def lock(file: IO[Any], *, is_shared: bool = False) -> None:
    """Lock an open file until it is closed, for moments: by the operating system; not on Windows."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)


class _Heartbeat:
    """A thread that renews the times of files, as long as there are any."""

    def __init__(self) -> None:
        self._paths: set[Path] = set()
        self._guard = threading.RLock()  # again in one thread: garbage may be collected, and a lease released, inside
        self._thread: threading.Thread | None = None

    def add(self, path: Path) -> None:
        with self._guard:
            self._paths.add(path)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heartbeat of leases", daemon=True)
                self._thread.start()

    def remove(self, path: Path) -> None:
        with self._guard:
            self._paths.discard(path)

    def renew(self) -> None:
        for path in tuple(self._paths):
            with suppress(OSError):  # gone at this moment
                os.utime(path)

    def _run(self) -> None:
        while True:
            time.sleep(HEARTBEAT)
            with self._guard:
                if not self._paths:
                    self._thread = None
                    return
            self.renew()


_heartbeat = _Heartbeat()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_heartbeat.__init__)  # type: ignore[misc]  # threads and leases are the parent's


def _written(place: Path, is_shared: bool) -> Path:
    """A new lease file, which says to people whose it is."""
    path = place.with_name(f"{place.name}.{SHARED if is_shared else ALONE}.{writer_name()}.lease")
    about = f"{os.getpid()}\n{socket.gethostname()}\n{datetime.now():%Y-%m-%d %H:%M:%S}\n"
    while True:
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another process has removed the folder at this moment
            try:
                path.write_text(about, encoding="utf-8")
            except OSError:
                path.unlink(missing_ok=True)
                raise
            return path


def _removed_if_gone(path: Path, now: float) -> bool:
    """Remove a lease that has ended. Its name is nobody else's, so nothing else can be hit."""
    if not is_gone(path, EXPIRY, now):
        return False
    path.unlink(missing_ok=True)
    return True


def _said(path: Path) -> str:
    """Who holds a lease, and since when."""
    try:
        process, host, since = path.read_text(encoding="utf-8").splitlines()
        return f"process {process}{'' if _is_local(path) else f' on {host}'} since {since}"
    except (OSError, ValueError):  # it has only just begun
        return "another process"


def _time_of(path: Path) -> float:
    """When a file was last renewed; long ago if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


@cache
def _host() -> str:
    """This machine since its start. A container has processes of its own, so it counts as another machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").replace("-", "")[:16]
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:  # not Linux
        boot, namespace = f"{uuid.getnode():x}", 0
    return f"{re.sub(r'[^A-Za-z0-9-]', '-', socket.gethostname())[:24]}-{boot}-{namespace:x}"


def _is_local(path: Path) -> bool:
    """Whether one can look up the process that made a file."""
    found = WRITER.search(path.name)
    return found is not None and found["host"] == _host() and os.name == "posix"


def _is_running(process: int, started: str) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # the latter: no process has so large an id
        return False
    except PermissionError:  # it is another user's
        pass
    return _started(process) in (started, None)


def _started(process: int) -> str | None:
    """When a process started, in ticks since the machine did; None where that is not told."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return ENDED if fields[0] in (b"Z", b"X") else fields[19].decode()  # a zombie has ended
