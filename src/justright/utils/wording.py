"""Numbers and lists of names in messages."""

from __future__ import annotations

from collections.abc import Sequence


def count_text(n: int, noun: str) -> str:
    """A number and its noun, such as "1 image" or "2,000 images"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def first_names(names: Sequence[str], n_shown: int) -> str:
    """The first names of a list, such as "a, b, ..."; all of them if there are at most `n_shown`."""
    return ", ".join(names) if len(names) <= n_shown else ", ".join([*names[:n_shown], "..."])
