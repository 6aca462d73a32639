"""Parts of a run that may not be there: what was found, or why nothing was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from justright.errors import JustrightError

T = TypeVar("T")


@dataclass(frozen=True)
class Missing:
    """Why a part of a run cannot be shown."""

    reason: str


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
