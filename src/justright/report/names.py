"""Names that came with the data, fit to be shown: nothing unseen in them, and no longer than a reader follows."""

from __future__ import annotations

import re
from html import escape

LONGEST = 120

_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, half characters, and those that turn the direction of whatever text follows them."""

UNSEEN = "\ufffd"


class Markup(str):
    """HTML that stands as it is. All other text is escaped where it enters a page."""

    __slots__ = ()


def plain(value: object) -> str:
    """The text with a mark in place of every character that would not be seen."""
    return _UNSEEN.sub(UNSEEN, str(value))


def short(value: object, longest: int = LONGEST) -> str:
    """Plain, and cut where it is longer."""
    text = plain(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def text(value: object) -> str:
    """Plain and escaped; markup passes."""
    return str(value) if isinstance(value, Markup) else escape(plain(value))


def named(value: object) -> Markup:
    """A name inside a sentence: short, escaped, and its writing direction is its own."""
    return Markup(f"<bdi>{escape(short(value))}</bdi>")
