"""One self-contained page: no request leaves it, light and dark, narrow and wide, on screen and on paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The browser itself keeps the page from asking the network for anything."""

MOST_DECIMALS = 5


def page(title: str, body: str) -> str:
    """The whole document around a body of HTML."""
    style, script = (files("justright.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, is_sortable: bool = False) -> str:
    """A table; numbers stand to the right, with as many decimals as the largest of their column has use for.

    A sortable one gets buttons and a field to search in, where scripts run.
    """
    rows = [tuple(row) for row in rows]
    decimals = [_decimals([row[column] for row in rows]) for column in range(len(columns))]
    kinds = ["" if n is None else " class=n" for n in decimals]
    head = "".join(f"<th scope=col{kind}>{escape(name)}</th>" for name, kind in zip(columns, kinds, strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, row, decimals))}</tr>\n" for row in rows)
    kind = " class=sortable" if is_sortable else ""
    return f"<div class=wide><table{kind}><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"


def facts(pairs: Mapping[str, object]) -> str:
    """Names and what they are."""
    said = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in pairs.items())
    return f"<dl>{said}</dl>"


def section(title: str, content: str) -> str:
    """A part of the page under a heading."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>\n"


def _decimals(values: Sequence[object]) -> int | None:
    """How many decimals show three digits of the largest number, and how the numbers differ. None for text."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if not numbers or len(numbers) + values.count(None) < len(values):
        return None
    largest = max(map(abs, numbers))
    if largest == 0 or all(isinstance(value, int) for value in numbers):
        return 0
    spread = max(numbers) - min(numbers) or largest
    return max(0, 2 - math.floor(math.log10(largest)), min(MOST_DECIMALS, 1 - math.floor(math.log10(spread))))


def _cell(value: object, decimals: int | None) -> str:
    if value is None:
        return "<td></td>"
    if decimals is None or not isinstance(value, int | float):
        return f"<td>{escape(str(value))}</td>"
    return f'<td class=n data-value="{value!r}">{value:,.{decimals}f}</td>'
