"""Parts of a run that may not be there: what was found, or why nothing was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from justright.errors import JustrightError

T = TypeVar("T")


@dataclass(frozen=True)
class Missing:
    """Why a part of a run cannot be shown: a sentence without its full stop."""

    reason: str


Values = dict[str, Any]
"""What the template of a part of a page shows, by name."""


@dataclass(frozen=True)
class PagePart:
    """A part of a page: the name of its template macro, its heading, and what it shows."""

    name: str
    title: str
    values: Values | Missing


def attempt(read: Callable[[], T | None], otherwise: str) -> T | Missing:
    """What `read` gives. A file that is not there is `Missing` with the words of `otherwise`, a bad one with its own.

    A report is read to understand a run, also one that was stopped or moved: no part of it may take the others down.
    """
    try:
        found = read()
    except (JustrightError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Missing(f"{otherwise}: {reason}" if otherwise else reason)
    return Missing(otherwise) if found is None else found


def optional(read: Callable[[], T | None]) -> T | None:
    """What `read` gives, or None where it is not there or bad."""
    found = attempt(read, "")
    return None if isinstance(found, Missing) else found


def read_parts(readers: Mapping[str, tuple[str, Callable[[], Values | Missing]]]) -> list[PagePart]:
    """The parts of a page, from a heading and a reader by name. One whose files are damaged says so."""
    return [
        PagePart(name, title, attempt(read, "This part cannot be shown")) for name, (title, read) in readers.items()
    ]
