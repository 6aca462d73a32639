"""Run a command in a separate process, optionally with a limit on file sizes, and return its output."""

from __future__ import annotations

from pathlib import Path

from benchmarks.forked import Ended
from tests.forked_programs import Program


def call_all(calls: list[tuple[Path, int | None, list[object]]]) -> list[Ended]:
    """Carry out commands one after the other."""
    return [call_limited(home, limit, *words) for home, limit, words in calls]


def call_limited(home: Path, limit: int | None, *words: object) -> Ended:
    """Carry out a command; no file that it writes may have more bytes than the limit."""
    return Program(*words, home=home, limit=limit).end()
