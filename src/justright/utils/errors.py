"""Errors for users. Each states the problem, what was expected and what to try."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum


class JustrightError(Exception):
    """A problem that the user can fix. The command line prints it without a traceback and exits with 1."""

    def __init__(self, problem: str, *, expected: str = "", advice: str = ""):
        self.problem = problem
        self.expected = expected
        self.advice = advice
        lines = (problem, expected and f"Expected: {expected}", advice and f"Try: {advice}")
        super().__init__("\n".join(filter(None, lines)))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with the known name that is closest to an unknown one; empty if none is close."""
    close = get_close_matches(name, [*known], 1)
    return f"did you mean {close[0]}?" if close else ""


class DataError(JustrightError):
    """Images, labels or a table of them are invalid."""


class MissingDataError(DataError):
    """A file does not exist."""


class BadKind(StrEnum):
    """Why an image cannot be used, as files store it."""

    EMPTY = "empty"
    NOT_AN_IMAGE = "not an image"
    TRUNCATED = "truncated"
    TOO_LARGE = "too large"
    MISSING = "missing"
    NO_HEIF = "no HEIF reader"
    UNREADABLE = "unreadable"

    @property
    def code(self) -> str:
        """The kind as an identifier, such as not_an_image."""
        return self.name.lower()


class BadImageError(DataError):
    """One image cannot be used; `kind` is the reason."""

    def __init__(self, problem: str, kind: BadKind = BadKind.UNREADABLE, *, expected: str = "", advice: str = ""):
        super().__init__(problem, expected=expected, advice=advice)
        self.kind = kind


class DegenerateError(JustrightError):
    """Valid input without a result: it is empty, or all of it is equal."""


class NothingSelectedError(DegenerateError):
    """A selector leaves out every class."""
