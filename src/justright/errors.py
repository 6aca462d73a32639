"""The few errors a user can meet. Each says what came, what was expected and what to try."""

from __future__ import annotations


class JustrightError(Exception):
    """Something the user can mend.

    The command line prints it without a traceback and exits with 1.
    """

    def __init__(self, came: str, *, expected: str = "", advice: str = ""):
        self.came = came
        self.expected = expected
        self.advice = advice
        lines = (came, expected and f"Expected: {expected}", advice and f"Try: {advice}")
        super().__init__("\n".join(filter(None, lines)))


class DataError(JustrightError):
    """Images, labels or a table of them are not what they should be."""


class MissingDataError(DataError):
    """A file that a data set needs is not there."""


class BadImageError(DataError):
    """One image cannot be used: unreadable, truncated, too large or no image at all."""


class DegenerateError(JustrightError):
    """Input from which no answer can be computed: nothing in it, or everything in it alike."""


class NothingSelectedError(DegenerateError):
    """A selector that leaves out every class."""
