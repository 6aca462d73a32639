"""The few errors a user can meet. Each states the problem, what was expected and what to try."""

from __future__ import annotations

from enum import StrEnum


class JustrightError(Exception):
    """Something the user can mend.

    The command line prints it without a traceback and exits with 1.
    """

    def __init__(self, problem: str, *, expected: str = "", advice: str = ""):
        self.problem = problem
        self.expected = expected
        self.advice = advice
        lines = (problem, expected and f"Expected: {expected}", advice and f"Try: {advice}")
        super().__init__("\n".join(filter(None, lines)))


class DataError(JustrightError):
    """Images, labels or a table of them are not what they should be."""


class MissingDataError(DataError):
    """A file that a data set needs is not there."""


class BadKind(StrEnum):
    """Why an image cannot be used, in a word that files keep; `code` is the same for a column of codes."""

    EMPTY = "empty"
    NOT_AN_IMAGE = "not an image"
    TRUNCATED = "truncated"
    TOO_LARGE = "too large"
    MISSING = "missing"
    NO_HEIF = "no HEIF reader"
    UNREADABLE = "unreadable"

    @property
    def code(self) -> str:
        """The word as a code, such as not_an_image."""
        return self.name.lower()


class BadImageError(DataError):
    """One image cannot be used; `kind` says why: unreadable, truncated, too large, no image at all, ..."""

    def __init__(self, problem: str, kind: BadKind = BadKind.UNREADABLE, *, expected: str = "", advice: str = ""):
        super().__init__(problem, expected=expected, advice=advice)
        self.kind = kind


class DegenerateError(JustrightError):
    """Input from which no answer can be computed: nothing in it, or everything in it alike."""


class NothingSelectedError(DegenerateError):
    """A selector that leaves out every class."""
