"""The append-only log of a review: one line per action, on disk before the action is confirmed.

A line is JSON that ends in a checksum of the rest. Lines are numbered without gaps. A kill during a write leaves an
incomplete last line without a valid checksum. Its action was never confirmed, so the line is skipped; nothing is ever
rewritten. The file is created together with its first line, the header; a file without one is damaged. `saved.json`
beside it holds the number of confirmed actions: a log with fewer has lost some, and is rejected.

Writers exclude each other with `log.lock`. Readers need no lock: a line that is being written has no valid checksum
yet, and is read the next time. So a run on a read-only disk can be read, too.
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

from filelock import FileLock
from pydantic import ValidationError

from justright.review.actions import LogLine
from justright.utils.errors import DataError
from justright.utils.files import parsed_json, replacing

FORMAT = "justright review 1"
RESTART = "restore the file from a copy; to start over, move the folder `review` of the run away"
REPAIR = "restore the file from a copy; to continue without the damaged lines, delete them and saved.json beside it"
CHECKSUM = re.compile(rb',"crc":"([0-9a-f]{8})"\}$')

logger = logging.getLogger(__name__)


def with_checksum(value: dict[str, Any]) -> bytes:
    """Return the value as a line of JSON that ends in its checksum."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def checked_value(line: bytes) -> dict[str, Any] | None:
    """Parse a line without its line break; None if the checksum is missing or wrong.

    Raises ValueError if the checksum is right but the rest is not JSON: such a line was made by hand.
    """
    match = CHECKSUM.search(line)
    if match is None or zlib.crc32(line[: match.start()]) != int(match[1], 16):
        return None
    value: dict[str, Any] = parsed_json(line[: match.start()] + b"}")
    return value


def write_count(path: Path, n: int) -> None:
    """Save the number of confirmed actions, which the log must hold at least.

    The actions themselves are on disk already, so a failure is only a warning. The number is not flushed: one that is
    too small does no harm.
    """
    try:
        with replacing(path, is_flushed=False) as temporary:
            temporary.write_bytes(with_checksum({"saved": n}))
    except OSError as error:
        logger.warning("%s could not be written: %s", path, error)


def read_count(path: Path) -> int | None:
    """Read the number of confirmed actions; None if the file is missing or damaged."""
    try:
        value = checked_value(path.read_bytes().rstrip(b"\n"))
        n = value and value.get("saved")
    except FileNotFoundError:
        return None
    except ValueError:
        n = None
    if not isinstance(n, int):
        logger.warning("%s is damaged; the next action rewrites it", path)
        return None
    return n


class Log:
    """The log at `path` of the review of one run; `fingerprint` identifies the predictions it is about."""

    def __init__(self, path: Path, fingerprint: str):
        self.path = path
        self.saved = path.with_name("saved.json")
        self.header = {"format": FORMAT, "predictions": fingerprint}
        self.seq = 0  # number of the last action that was read
        self._offset = 0  # bytes that were read; 0 before the header
        self._lock = FileLock(path.with_name("log.lock"), poll_interval=0.01)

    def new_lines(self) -> list[LogLine]:
        """Read the lines that any process has written since the last call; DataError if some are lost."""
        n_saved = read_count(self.saved)  # before the log: it never counts a line that is not there yet
        if not self._exists(n_saved) or (self._offset and self.path.stat().st_size == self._offset):
            return []
        with self.path.open("rb", buffering=0) as file:
            return self._read(file, n_saved)

    @contextmanager
    def writing(self) -> Iterator[list[LogLine]]:
        """Exclude other writers; yields the lines they wrote before. Required for `append`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            n_saved = read_count(self.saved)
            if not self._exists(n_saved):
                self._create()
            with self.path.open("r+b", buffering=0) as file:
                self._file = file
                yield self._read(file, n_saved)

    def append(self, line: LogLine) -> None:
        """Write one line, which is on disk when this returns. Only inside `writing`."""
        data = with_checksum(line.model_dump())
        self._file.seek(-1, os.SEEK_END)
        if self._file.read(1) != b"\n":  # after an incomplete line
            data = b"\n" + data
        descriptor = self._file.fileno()
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
        self._offset = os.fstat(descriptor).st_size
        self.seq = line.seq
        write_count(self.saved, line.seq)

    def _exists(self, n_saved: int | None) -> bool:
        exists = self.path.exists()
        if not exists and (n := max(n_saved or 0, self.seq)):
            raise DataError(f"{self.path} is missing; it held {n:,} actions", advice=RESTART)
        return exists

    def _create(self) -> None:
        """Create the file together with its header, so that a kill never leaves an empty one."""
        write_count(self.saved, 0)
        with replacing(self.path) as temporary:
            temporary.write_bytes(with_checksum(self.header))
        _flush_folder(self.path.parent)

    def _read(self, file: IO[bytes], n_saved: int | None) -> list[LogLine]:
        """Read what was added to the file. An error changes nothing, so the next call raises it again."""
        if os.fstat(file.fileno()).st_size < self._offset:
            raise DataError(f"{self.path} became shorter while it was in use", advice=RESTART)
        file.seek(self._offset)
        data = file.read()
        *texts, tail = data.split(b"\n")
        values = [self._value(text) for text in texts if text]
        n_read = len(data)
        if tail and (last := self._value(tail)) is None:
            n_read -= len(tail)  # it may be being written now
        elif tail:
            values.append(last)  # only its line break is missing
        is_damaged = bool(values) and values[-1] is None
        whole = [value for value in values if value is not None]
        if not self._offset:
            self._check_header(whole.pop(0) if whole else {}, is_empty=not data)
        lines: list[LogLine] = []
        for value in whole:
            lines.append(self._line(value, before=lines[-1].seq if lines else self.seq))
        seq = lines[-1].seq if lines else self.seq
        if n_saved is None and is_damaged:
            raise DataError(f"{self.path} has a damaged line after action {seq}", advice=REPAIR)
        if seq < (n_saved or 0):
            raise DataError(f"{self.path} holds {seq} of the {n_saved} actions that were saved", advice=REPAIR)
        self.seq = seq
        self._offset += n_read
        return lines

    def _value(self, text: bytes) -> dict[str, Any] | None:
        """The value of a line; None if it is incomplete."""
        try:
            value = checked_value(text)
        except ValueError as error:
            raise DataError(f"{self.path} cannot be read: {error}: {text[:80]!r}", advice=REPAIR) from error
        if value is None:
            logger.warning("%s: skipped an incomplete line", self.path)
        return value

    def _check_header(self, header: dict[str, Any], is_empty: bool) -> None:
        if "format" not in header:
            problem = "it is empty" if is_empty else "its first line is damaged"
            raise DataError(f"{self.path} holds no review: {problem}", expected=FORMAT, advice=RESTART)
        if header != self.header:
            raise DataError(
                f"{self.path} is a review of other predictions",
                expected=f"{FORMAT} of the predictions in {self.path.parents[1]}",
                advice="the run was repeated: move its folder `review` away to start over",
            )

    def _line(self, value: dict[str, Any], before: int) -> LogLine:
        try:
            line = LogLine.model_validate(value)
        except ValidationError as error:
            raise DataError(f"{self.path}: action {value.get('seq')} is of an unknown kind: {error}") from error
        if line.seq != before + 1:
            raise DataError(
                f"{self.path} jumps from action {before} to {line.seq}",
                expected=f"{FORMAT}, every action",
                advice="lines were lost or changed: restore the file from a copy",
            )
        return line


def _flush_folder(folder: Path) -> None:
    """Flush a new file name to disk; Windows does that itself."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
