"""Elements of pages (names, pictures, tables, missing parts) and the template environment.

A page is one self-contained file without network requests, for light and dark screens, phones and paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from justright.report.drawing import for_page
from justright.utils.errors import JustrightError

MOST_DECIMALS = 5
MOST_ROWS = 3000  # of a table
LONGEST = 120
# control characters, surrogates, and characters that change the direction of the following text
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
REPLACEMENT = "\ufffd"
Values = dict[str, Any]  # the values of a template, by name

T = TypeVar("T")


class Name(str):
    """A name on a page: short, without invisible characters, isolated in its writing direction."""

    __slots__ = ()

    def __new__(cls, value: object) -> Name:
        """Shorten the text of a value."""
        return super().__new__(cls, short(value))


def plain(value: object) -> str:
    """Replace every invisible character."""
    return _INVISIBLE.sub(REPLACEMENT, str(value))


def short(value: object, longest: int = LONGEST) -> str:
    """Plain text, cut if it is longer."""
    text = plain(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


@dataclass(frozen=True)
class Picture:
    """An image inside the page."""

    uri: str  # the image as a data URI
    width: int  # in pixels
    height: int
    alt: str  # alternative text for screen readers


@dataclass(frozen=True)
class Table:
    """Columns and rows. A cell is text, a number, a `Name`, a `Picture`, a sentence by `cell`, or None if empty."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    n_more: int = 0  # number of rows left out, to keep the page small

    @staticmethod
    def of(rows: Sequence[Mapping[str, object]], n_more: int = 0) -> Table:
        """A table of at least one row, each a mapping from the same columns to cells."""
        return Table(list(rows[0]), [list(row.values()) for row in rows], n_more)

    @property
    def decimals(self) -> list[int | None]:
        """Decimals of each column of numbers; None for other columns."""
        return [_decimals([row[place] for row in self.rows]) for place in range(len(self.columns))]


def _decimals(values: Sequence[object]) -> int | None:
    """Enough decimals for three digits of the largest number and for the differences between numbers."""
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
    """The reason why something cannot be shown: a sentence without its full stop."""

    reason: str


@dataclass(frozen=True)
class PagePart:
    """A part of a page: the name of its template macro, its heading and its values."""

    name: str
    title: str
    values: Values | Missing


def attempt(read: Callable[[], T | None], otherwise: str) -> T | Missing:
    """Call `read`; None becomes `Missing(otherwise)`, and an error becomes `Missing` with its message.

    One unreadable file of a stopped or moved run must not prevent the rest of the report.
    """
    try:
        value = read()
    except (JustrightError, OSError) as error:
        return _failed(error, otherwise)
    return Missing(otherwise) if value is None else value


def _failed(error: Exception, what: str) -> Missing:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return Missing(f"{what}: {reason}" if what else reason)


def optional(read: Callable[[], T | None]) -> T | None:
    """Call `read`; None if it fails."""
    value = attempt(read, "")
    return None if isinstance(value, Missing) else value


def read_parts(readers: Mapping[str, tuple[str, Callable[[], Values | Missing | None]]]) -> list[PagePart]:
    """Read the parts of a page. `readers` maps a name to a heading and a function; errors become messages.

    A part whose function returns None is omitted.
    """
    parts = []
    for name, (title, read) in readers.items():
        try:
            values = read()
        except (JustrightError, OSError) as error:
            values = _failed(error, "This part cannot be shown")
        if values is not None:
            parts.append(PagePart(name, title, values))
    return parts


def render(template: str, **values: Any) -> str:
    """Render a template of `justright/report/templates` with these values."""
    return environment().get_template(template).render(values)


def cell(macro: str, value: object) -> Markup | None:
    """The text of a macro of `cells.html` for a value; None if it is empty."""
    return getattr(environment().get_template("cells.html").module, macro)(value).strip() or None


@cache
def environment() -> Environment:
    """The template environment: escapes all values, raises for missing ones, replaces invisible characters."""
    templates = Environment(
        loader=PackageLoader("justright.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else plain(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["most_rows"] = MOST_ROWS
    templates.filters |= {"number": "{:,}".format, "short": short, "svg": for_page}
    kinds = {"missing": Missing, "name": Name, "sentence": Markup, "picture": Picture}
    templates.tests |= {kind: lambda value, of=of: isinstance(value, of) for kind, of in kinds.items()}
    return templates
