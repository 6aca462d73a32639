"""The append-only log of a review: one line an action, on disk before anyone hears that it was done.

A line is JSON that ends in a checksum of the rest. Lines are numbered without gaps. A kill in the middle of a write
leaves a torn end without a valid checksum; it was never answered, so it is passed over, and nothing is ever rewritten.
Processes keep each other out by a lock on the file, except on Windows, where one process at a time may review a run.
"""

from __future__ import annotations

import json
import logging
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from justright.errors import DataError
from justright.review.actions import Line

FORMAT = "justright review 1"
CHECKSUM = re.compile(rb',"crc":"([0-9a-f]{8})"\}$')

logger = logging.getLogger(__name__)


class Log:
    """The log at `path` of a review of one run; `fingerprint` says which predictions it is about."""

    def __init__(self, path: Path, fingerprint: str):
        self.path = path
        self.fingerprint = fingerprint
        self.seq = 0
        """The number of the last line that was read."""
        self._offset = 0
        self._has_header = False
        self._is_torn = False

    def new_lines(self) -> list[Line]:
        """The lines that this or another process has written since the last call."""
        if not self.path.exists() or self.path.stat().st_size == self._offset:
            return []
        with self.path.open("rb", buffering=0) as file:
            _lock(file, is_shared=True)  # else the first half of a write could be read
            return self._read(file)

    @contextmanager
    def writing(self) -> Iterator[list[Line]]:
        """Keep other processes out; yields what they wrote before. Only `append` inside."""
        is_new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b", buffering=0) as file:  # closing it gives the lock back
            _lock(file)
            if is_new:
                _flush_folder(self.path.parent)
            self._file = file
            yield self._read(file)

    def append(self, line: Line) -> None:
        """Write one line; it is on disk when this returns. Inside `writing` only."""
        text = b"" if self._has_header else sealed({"format": FORMAT, "predictions": self.fingerprint})
        text += sealed(line.model_dump())
        if self._is_torn:
            text = b"\n" + text
        left, number = text, self._file.fileno()
        while left:
            left = left[os.write(number, left) :]
        os.fsync(number)
        self._offset = os.fstat(number).st_size
        self._has_header, self._is_torn, self.seq = True, False, line.seq

    def _read(self, file: IO[bytes]) -> list[Line]:
        if os.fstat(file.fileno()).st_size < self._offset:
            raise DataError(
                f"{self.path} has become shorter while it was in use", advice="put the file back from a copy"
            )
        file.seek(self._offset)
        if not (data := file.read()):
            return []
        *whole, tail = data.split(b"\n")
        lines = [line for text in whole if (line := self._parse(text)) is not None]
        self._offset += len(data) - len(tail)
        self._is_torn = bool(tail)
        if tail and (last := self._parse(tail)) is not None:  # only the line break is missing
            lines.append(last)
            self._offset += len(tail)
        return lines

    def _parse(self, text: bytes) -> Line | None:
        """One line; None for the header, a blank and a torn one."""
        found = CHECKSUM.search(text)
        if found is None or zlib.crc32(text[: found.start()]) != int(found[1], 16):
            if text:
                logger.warning("%s: passed over an incomplete line after action %d", self.path, self.seq)
            return None
        value: dict[str, Any] = json.loads(text[: found.start()] + b"}")
        if "format" in value:
            if value != {"format": FORMAT, "predictions": self.fingerprint}:
                raise DataError(
                    f"{self.path} is a review of other predictions",
                    expected=f"{FORMAT} of the predictions in {self.path.parents[1]}",
                    advice="the run was made again: move its folder `review` away to begin anew",
                )
            self._has_header = True
            return None
        try:
            line = Line.model_validate(value)
        except ValidationError as error:
            raise DataError(f"{self.path}: action {value.get('seq')} is of no known kind: {error}") from error
        if not self._has_header or line.seq != self.seq + 1:
            raise DataError(
                f"{self.path} goes from action {self.seq} to {line.seq}",
                expected=f"{FORMAT}, every action",
                advice="lines were lost or changed: put the file back from a copy",
            )
        self.seq = line.seq
        return line


def sealed(value: dict[str, Any]) -> bytes:
    """A line of the log: the value as JSON, and its checksum."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def _lock(file: IO[bytes], *, is_shared: bool = False) -> None:
    """Wait until no other process writes, or with `is_shared` False reads either."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    fcntl.flock(file, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)


def _flush_folder(folder: Path) -> None:
    """A new name is on disk only when its folder is; Windows sees to that itself."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
