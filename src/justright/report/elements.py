"""What templates show, names, sentences, pictures, tables, or why a part is missing; and what escapes all of it.

A page is one self-contained file: no request leaves it, light and dark, narrow and wide, on screen and on paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from justright.report.drawing import for_page
from justright.utils.errors import JustrightError

MOST_DECIMALS = 5
LONGEST = 120
# control characters, half characters, and those that turn the direction of whatever text follows them
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
REPLACEMENT = "\ufffd"
Values = dict[str, Any]  # what the template of a part of a page shows, by name
Words = tuple[str, ...]  # a sentence in pieces, so that a page can set the names in it apart from the words

T = TypeVar("T")


class Name(str):
    """A name as a page shows it: short, without invisible characters, with a writing direction of its own."""

    __slots__ = ()

    def __new__(cls, value: object) -> Name:
        """The name of anything that can be text."""
        return super().__new__(cls, short(value))


def plain(value: object) -> str:
    """The text with a mark in place of every invisible character."""
    return _INVISIBLE.sub(REPLACEMENT, str(value))


def short(value: object, longest: int = LONGEST) -> str:
    """Plain, and cut where it is longer."""
    text = plain(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def join(separator: str, sentences: Iterable[Words]) -> Words:
    """Several sentences as one, with a separator between them."""
    pieces = [piece for words in sentences for piece in (separator, *words)]
    return tuple(pieces[1:])


@dataclass(frozen=True)
class Picture:
    """An image inside the page."""

    uri: str  # the image itself, as text
    width: int  # in pixels
    height: int
    alt: str  # what a person who cannot see it is told


@dataclass(frozen=True)
class Table:
    """Columns and rows. A cell is text, a number, a `Name`, `Words`, a `Picture`, or None where it is empty."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def decimals(self) -> list[int | None]:
        """For each column, how many decimals its numbers need; None for a column of anything else."""
        return [_decimals([row[place] for row in self.rows]) for place in range(len(self.columns))]


def cut_in_the_middle(rows: Sequence[Any], most: int) -> tuple[list[Any], int]:
    """Both ends of a long list, and how many entries are left out between them."""
    if len(rows) <= most:
        return list(rows), 0
    n_last = most // 2
    return [*rows[: most - n_last], *rows[len(rows) - n_last :]], len(rows) - most


def _decimals(values: Sequence[object]) -> int | None:
    """Decimals of a column: as many as show three digits of the largest number, and how the numbers differ."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if not numbers or len(numbers) + values.count(None) < len(values):
        return None
    finite = [value for value in numbers if math.isfinite(value)]
    largest = max(map(abs, finite), default=0)
    if largest == 0 or all(isinstance(value, int) for value in numbers):
        return 0
    spread = max(finite) - min(finite) or largest
    return max(0, 2 - math.floor(math.log10(largest)), min(MOST_DECIMALS, 1 - math.floor(math.log10(spread))))


@dataclass(frozen=True)
class Missing:
    """Why a part of a run cannot be shown: a sentence without its full stop."""

    reason: str


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


def read_parts(readers: Mapping[str, tuple[str, Callable[[], Values | Missing | None]]]) -> list[PagePart]:
    """Build the parts of a page. `readers` maps a name to a heading and a function; a damaged file becomes a message.

    A part that has nothing to say, for which its reader gives None, is left out.
    """
    parts = []
    for name, (title, read) in readers.items():
        found = attempt(lambda read=read: (read(),), "This part cannot be shown")  # type: ignore[misc]
        values = found if isinstance(found, Missing) else found[0]
        if values is not None:
            parts.append(PagePart(name, title, values))
    return parts


def render(template: str, **values: Any) -> str:
    """The text of a template of `justright/report/templates` with these values."""
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """Escapes every value, refuses one that is not given, and lets no invisible character through."""
    made = Environment(
        loader=PackageLoader("justright.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else plain(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": "{:,}".format, "short": short, "svg": for_page}
    kinds = {"missing": Missing, "name": Name, "words": tuple, "picture": Picture}
    made.tests |= {kind: lambda value, of=of: isinstance(value, of) for kind, of in kinds.items()}
    return made
