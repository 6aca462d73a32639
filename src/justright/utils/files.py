"""Atomic writes (temporary name, flush to disk, rename), small JSON files, sizes, and the cache folder."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from justright.utils.locks import HAS_LOCKS, lock_file, locked_file

DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error numbers of a file that cannot grow: the disk is full, or a limit is reached."""

TEMPORARY_NAME = re.compile(r"^\..+\.[0-9a-f]{16}\.tmp$")
ABANDONED_SECONDS = 24 * 3600.0  # long enough even where the clocks of machines are set to different time zones

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def home() -> Path:
    """Where checkpoints, features and banks are kept: JUSTRIGHT_HOME, else `.cache/justright` in the user's folder."""
    return Path(os.environ.get("JUSTRIGHT_HOME") or Path.home() / ".cache" / "justright")


@contextmanager
def explain_disk_full(path: Path) -> Iterator[None]:
    """Raise OSError with the name of the file if it cannot grow, whichever library writes it."""
    try:
        yield
    except OSError as error:
        if error.errno is None and re.fullmatch(r"\d+ requested and \d+ written", str(error)):  # numpy leaves out why
            raise OSError(errno.ENOSPC, "the disk is full, or a limit is reached", str(path)) from error
        if error.errno in DISK_FULL_ERRORS:
            error.filename, error.strerror = error.filename or str(path), os.strerror(error.errno)
        raise
    except Exception as error:  # safetensors has an error of its own, whose text ends in "(os error 28)"
        match = re.search(r"\(os error (\d+)\)", str(error))
        if match is None or int(match[1]) not in DISK_FULL_ERRORS:
            raise
        raise OSError(int(match[1]), os.strerror(int(match[1])), str(path)) from error


@contextmanager
def replacing(path: Path, is_flushed: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to; it replaces `path` when the block ends without an error.

    A reader sees the old file or the new one, never half of it. After an error nothing has changed. Without
    `is_flushed`, meant for thousands of files that can be recreated, a power failure may leave an empty file.
    """
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.tmp")
    try:
        with explain_disk_full(path):
            lock = locked_file(temporary)  # so that no other process deletes it as a leftover
            assert lock is not None
            with lock:
                if not HAS_LOCKS:  # Windows replaces no open file
                    lock.close()
                yield temporary
                if is_flushed:
                    with temporary.open("r+b") as written:  # Windows flushes no file that is open for reading only
                        os.fsync(written.fileno())
                temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def expect_writable(path: Path) -> None:
    """Raise OSError if a file or folder cannot be created at this path."""
    folder = nearest_existing(path if path.is_dir() else path.parent)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def leftovers(folder: Path) -> list[Path]:
    """Temporary files in this folder and below that a killed process left.

    Without locks, as on Windows, they are those older than `ABANDONED_SECONDS`.
    """
    return [path for path in _files_below(folder) if TEMPORARY_NAME.search(path.name) and _is_abandoned(path)]


def _is_abandoned(path: Path) -> bool:
    with suppress(FileNotFoundError), path.open("r+b") as file:
        try:
            if HAS_LOCKS:
                return lock_file(file, wait=False)
        except OSError:  # no locks in this file system
            pass
        return time.time() - path.stat().st_mtime > ABANDONED_SECONDS
    return False  # gone at this moment


def remove_leftovers(folder: Path) -> None:
    """Delete `leftovers`; files that a process may still be writing, on any machine, stay."""
    for path in leftovers(folder):
        path.unlink(missing_ok=True)


def nearest_existing(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def bytes_of(*paths: Path) -> int:
    """Size of files, and of folders with their content; 0 for missing ones."""
    total = 0
    for path in paths:
        for file in _files_below(path) if path.is_dir() else [path]:
            with suppress(OSError):  # gone at this moment
                total += file.stat().st_size
    return total


def _files_below(folder: Path) -> Iterator[Path]:
    """All files; other processes may remove folders meanwhile."""
    return (Path(inside, name) for inside, _, names in os.walk(folder) for name in names)


def size_text(n_bytes: int) -> str:
    """A number of bytes for a person, such as 1.5 GB."""
    unit = next((unit for unit in reversed(UNITS) if n_bytes >= UNITS[unit]), "B")
    return f"{n_bytes / UNITS[unit]:.3g} {unit}"


def parsed_json(text: str | bytes) -> Any:
    """Parse JSON; ValueError if it is invalid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON that is nested too deeply") from error


@cache
def validator_of(kind: Any) -> Callable[[Any], Any]:
    """A function that validates plain values, such as those of JSON, and converts them to a type.

    Example: `validator_of(list[tuple[str, int]])([["a", 1]])` is `[("a", 1)]`. Cached, because it takes longer to
    create than to use.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a value as readable JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
