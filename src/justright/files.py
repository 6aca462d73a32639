"""Files that are either whole or not there: temporary name, flush to disk, rename."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IS_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What the system says where a file cannot grow: the disk is full, or a limit is reached."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Where a file cannot grow, say so with its name, as an OSError, whatever library wrote it."""
    try:
        yield
    except OSError as error:
        if error.errno is None and re.fullmatch(r"\d+ requested and \d+ written", str(error)):  # numpy leaves out why
            raise OSError(errno.ENOSPC, "the disk is full, or a limit is reached", str(path)) from error
        if error.errno in IS_FULL:
            error.filename, error.strerror = error.filename or str(path), os.strerror(error.errno)
        raise
    except Exception as error:  # safetensors has an error of its own, which ends in the number of the system's
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None or int(number[1]) not in IS_FULL:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


@contextmanager
def replacing(path: Path, is_flushed: bool = True) -> Iterator[Path]:
    """Write to the path this yields; on leaving without an error it takes the place of `path` at once.

    A reader sees the old file or the new one, never half of it. After an error nothing has changed. Without
    `is_flushed` a power cut may leave it empty: for thousands of files that can be made again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming(path):
            yield temporary
            if is_flushed:
                with temporary.open("rb") as written:
                    os.fsync(written.fileno())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Delete what `replacing` could not, in this folder, because its process was killed.

    Where one cannot ask whether a process is still there (outside POSIX) nothing is deleted.
    """
    for leftover in folder.glob(".*.tmp") if os.name == "posix" else ():
        process = leftover.suffixes[-2].removeprefix(".") if len(leftover.suffixes) > 1 else ""
        if process.isdecimal() and not _is_running(int(process)):
            leftover.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a value as readable JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
