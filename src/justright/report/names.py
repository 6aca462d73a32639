"""Names that came with the data, as a page shows them: without invisible characters, and not too long."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
