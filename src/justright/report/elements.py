"""What templates show, names, sentences, pictures and tables, and the one environment, which escapes all of it.

A page is one self-contained file: no request leaves it, light and dark, narrow and wide, on screen and on paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from justright.report.drawing import for_page
from justright.report.reading import Missing

MOST_DECIMALS = 5
LONGEST = 120

_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, half characters, and those that turn the direction of whatever text follows them."""

REPLACEMENT = "\ufffd"

Words = tuple[str, ...]  # a sentence in pieces, so that a page can set the names in it apart from the words


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
    """As many as show three digits of the largest number, and how the numbers differ."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if not numbers or len(numbers) + values.count(None) < len(values):
        return None
    finite = [value for value in numbers if math.isfinite(value)]
    largest = max(map(abs, finite), default=0)
    if largest == 0 or all(isinstance(value, int) for value in numbers):
        return 0
    spread = max(finite) - min(finite) or largest
    return max(0, 2 - math.floor(math.log10(largest)), min(MOST_DECIMALS, 1 - math.floor(math.log10(spread))))


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
