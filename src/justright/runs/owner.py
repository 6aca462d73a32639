"""One folder, one owner: whoever writes to it holds a lock that ends with its process, however that ends."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from io import FileIO
from pathlib import Path

from justright.errors import JustrightError
from justright.files import naming, parsed_json
from justright.locks import has_locks, lock

LOCK = ".owner"  # the file in the folder that is locked; it says who holds it, and goes when the work is done
LOCKED_BYTE = 1 << 20  # Windows lets nobody read what is locked, so the locked byte lies behind what the file says


class OwnedError(JustrightError):
    """Another process is writing to the folder."""


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Be the only one to write to a folder, which is made if it is not there; a second owner is refused at once.

    The lock of a killed process has ended with it, and its file is taken over.
    """
    was_there = folder.exists()
    file = _locked(folder)
    try:
        with naming(folder / LOCK):
            now = f"{datetime.now():%Y-%m-%d %H:%M:%S}"
            file.write(json.dumps({"process": os.getpid(), "since": now, "host": socket.gethostname()}).encode())
            file.truncate()
        yield
    finally:
        with suppress(OSError):  # Windows keeps a file that is open; it is taken over the next time
            (folder / LOCK).unlink()
        file.close()
        if not was_there:
            with suppress(OSError):  # stays unless it is empty
                folder.rmdir()


def _locked(folder: Path) -> FileIO:
    path = folder / LOCK
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        except FileNotFoundError:  # the owner before has removed the folder at this moment
            continue
        if not (lock(file, waits=False) if has_locks() else _lock_on_windows(file)):
            said = _said(file)
            file.close()
            raise OwnedError(
                f"{folder} is being written by {said}",
                expected="one process at a time",
                advice="wait for it, stop it, or name another --out",
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # locked, but the owner before has removed it: begin again


def _lock_on_windows(file: FileIO) -> bool:
    import msvcrt

    file.seek(LOCKED_BYTE)
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    finally:
        file.seek(0)
    return True


def _said(file: FileIO) -> str:
    """Who holds the lock, and since when, as the file says."""
    try:
        about = parsed_json(file.read())
        elsewhere = "" if about["host"] == socket.gethostname() else f" on {about['host']}"
        return f"process {about['process']}{elsewhere} since {about['since']}"
    except (ValueError, TypeError, KeyError, OSError):  # it has only just begun
        return "another process"
