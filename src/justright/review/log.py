"""The append-only log of a review: one line an action, on disk before anyone hears that it was done.

A line is JSON that ends in a checksum of the rest. Lines are numbered without gaps. A kill in the middle of a write
leaves a torn end without a valid checksum; it was never answered, so it is passed over, and nothing is ever rewritten.
The file comes into being with its first line, which says what it is: one without that line is damaged. Beside it
`saved.json` tells how many actions were answered: a log that holds fewer has lost some, and is refused.
Processes keep each other out by a lock on the file, except on Windows, where one process at a time may review a run.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from justright.review.actions import LogLine
from justright.review.sealed import read_count, sealed, unsealed, write_count
from justright.utils.errors import DataError
from justright.utils.files import temporary_of
from justright.utils.locks import lock_file

FORMAT = "justright review 1"
RESTART = "put the file back from a copy; to begin anew, move the folder `review` of the run away"
REPAIR = "put the file back from a copy; to go on without what is damaged, delete those lines, and saved.json beside it"

logger = logging.getLogger(__name__)


class Log:
    """The log at `path` of a review of one run; `fingerprint` says which predictions it is about."""

    def __init__(self, path: Path, fingerprint: str):
        self.path = path
        self.saved = path.with_name("saved.json")
        self.header = {"format": FORMAT, "predictions": fingerprint}
        self.seq = 0
        """The number of the last line that was read."""
        self._offset = 0
        self._has_header = False
        self._is_torn = False

    def new_lines(self) -> list[LogLine]:
        """The lines that this or another process has written since the last call; DataError where some are lost."""
        n_saved = read_count(self.saved)  # before the log: it tells of no line that is not there yet
        if not self._exists(n_saved) or (self._has_header and self.path.stat().st_size == self._offset):
            return []
        with self.path.open("rb", buffering=0) as file:
            lock_file(file, is_shared=True)  # else the first half of a write could be read
            return self._read(file, n_saved)

    @contextmanager
    def writing(self) -> Iterator[list[LogLine]]:
        """Keep other processes out; yields what they wrote before. Only `append` inside."""
        n_saved = read_count(self.saved)
        if not self._exists(n_saved):
            self._create()
        # it is there, so that none is made: an empty one would count as damaged
        with open(self.path, "a+b", buffering=0, opener=lambda path, how: os.open(path, how & ~os.O_CREAT)) as file:
            lock_file(file)  # closing the file gives it back
            self._file = file
            yield self._read(file, n_saved)

    def append(self, line: LogLine) -> None:
        """Write one line; it is on disk when this returns. Inside `writing` only."""
        left, number = b"\n" * self._is_torn + sealed(line.model_dump()), self._file.fileno()
        while left:
            left = left[os.write(number, left) :]
        os.fsync(number)
        self._offset = os.fstat(number).st_size
        self._is_torn, self.seq = False, line.seq
        write_count(self.saved, line.seq)

    def _exists(self, n_saved: int | None) -> bool:
        is_there = self.path.exists()
        if not is_there and (n := max(n_saved or 0, self.seq)):
            raise DataError(f"{self.path} is gone, and it held {n:,} actions", advice=RESTART)
        return is_there

    def _create(self) -> None:
        """Make the file with its first line in it: not even a kill leaves an empty one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_of(self.path)
        try:
            with temporary.open("wb") as file:
                file.write(sealed(self.header))
                file.flush()
                os.fsync(file.fileno())
            write_count(self.saved, 0)
            try:
                os.link(temporary, self.path)  # unlike a rename it replaces nothing that another process made
            except FileExistsError:
                pass
            except OSError:  # a file system without links
                temporary.rename(self.path)
        finally:
            temporary.unlink(missing_ok=True)
        _flush_folder(self.path.parent)

    def _read(self, file: IO[bytes], n_saved: int | None) -> list[LogLine]:
        if os.fstat(file.fileno()).st_size < self._offset:
            raise DataError(f"{self.path} has become shorter while it was in use", advice=RESTART)
        file.seek(self._offset)
        data = file.read()
        before = self.seq, self._has_header
        try:
            lines, n_bytes = self._parse(data, n_saved)
        except DataError:
            self.seq, self._has_header = before
            raise
        self._offset += n_bytes
        if data:
            self._is_torn = not data.endswith(b"\n")
        return lines

    def _parse(self, data: bytes, n_saved: int | None) -> tuple[list[LogLine], int]:
        """The lines in what was read, and how many bytes they are: without a torn end."""
        *whole, tail = data.split(b"\n")
        lines, is_damaged = [], False
        for text in filter(None, whole):
            found = self._line(text)
            is_damaged = found is None
            lines += found or []
        last = self._line(tail) if tail else None
        lines += last or []  # only its line break is missing
        if not self._has_header:
            what = "its first line is damaged" if data else "it is empty"
            raise DataError(f"{self.path} holds no review: {what}", expected=FORMAT, advice=RESTART)
        if n_saved is None and is_damaged and last is None:
            raise DataError(f"{self.path} has a damaged line after action {self.seq}", advice=REPAIR)
        if self.seq < (n_saved or 0):
            raise DataError(f"{self.path} holds {self.seq} of the {n_saved} actions that were saved", advice=REPAIR)
        return lines, len(data) - (len(tail) if last is None else 0)

    def _line(self, text: bytes) -> list[LogLine] | None:
        """The one line that this is, the next after those before it; no line for the header, None for a torn one."""
        try:
            value = unsealed(text)
        except ValueError as error:
            raise DataError(f"{self.path} cannot be read after action {self.seq}: {error}", advice=REPAIR) from error
        if value is None:
            logger.warning("%s: passed over an incomplete line after action %d", self.path, self.seq)
            return None
        if "format" in value:
            if value != self.header:
                raise DataError(
                    f"{self.path} is a review of other predictions",
                    expected=f"{FORMAT} of the predictions in {self.path.parents[1]}",
                    advice="the run was made again: move its folder `review` away to begin anew",
                )
            self._has_header = True
            return []
        try:
            line = LogLine.model_validate(value)
        except ValidationError as error:
            raise DataError(f"{self.path}: action {value.get('seq')} is of no known kind: {error}") from error
        if not self._has_header or line.seq != self.seq + 1:
            raise DataError(
                f"{self.path} goes from action {self.seq} to {line.seq}",
                expected=f"{FORMAT}, every action",
                advice="lines were lost or changed: put the file back from a copy",
            )
        self.seq = line.seq
        return [line]


def _flush_folder(folder: Path) -> None:
    """A new name is on disk only when its folder is; Windows sees to that itself."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
