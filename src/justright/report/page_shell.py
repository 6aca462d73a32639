"""One self-contained page: no request leaves it, light and dark, narrow and wide, on screen and on paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files

from justright.report.names import Markup, text
from justright.report.reading import Missing, attempt

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
        f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    is_sortable: bool = False,
    search: str = "Search classes and reasons",
) -> str:
    """A table; numbers stand to the right, with as many decimals as the largest of their column has use for.

    A sortable one gets buttons and a field to search in, where scripts run; `search` says what for.
    """
    kind = f' class=sortable data-search="{text(search)}"' if is_sortable else ""
    return f"<div class=wide>{_table(columns, rows, kind)}</div>"


def cards(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], search: str) -> str:
    """The same table with each row as a card. What stands in the first column is its picture, in the second its name.

    `name` tells this list of cards from others. Where scripts run, cards can be sorted and searched.
    """
    # said once in a rule, not again in each of some ten thousand cells
    labels = "".join(
        f'#{name} td:nth-child({place})::before{{content:"{column}"}}'
        for place, column in enumerate(columns, 1)
        if place > 2
    )
    kind = f' id={name} class="sortable cards" data-search="{text(search)}"'
    return f"<style>{labels}</style>\n<div>{_table(columns, rows, kind)}</div>"


def facts(pairs: Mapping[str, object]) -> str:
    """Names and what they are."""
    said = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in pairs.items())
    return f"<dl>{said}</dl>"


def section(title: str, content: str, name: str = "") -> str:
    """A part of the page under a heading; `name` is what links to it say."""
    anchor = f' id="{text(name)}"' if name else ""
    return f"<section{anchor}>\n<h2>{text(title)}</h2>\n{content}\n</section>\n"


def contents(titles: Mapping[str, str]) -> str:
    """Links to the sections, titles by name."""
    links = "".join(f'<li><a href="#{text(name)}">{text(title)}</a></li>' for name, title in titles.items())
    return f"<nav aria-label=Contents><ul>{links}</ul></nav>"


def note(said: object) -> str:
    """A remark in small letters."""
    return f"<p class=soft>{text(said)}</p>"


def shown(write: Callable[[], str]) -> str:
    """A part of a page. One whose files are damaged says so, and the others are written all the same."""
    part = attempt(write, "This part cannot be shown")
    return note(f"{part.reason}.") if isinstance(part, Missing) else part


def folded(title: str, content: str) -> str:
    """What only some readers want: closed on screen, open on paper."""
    return f"<details><summary>{text(title)}</summary>\n{content}\n</details>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]], kind: str) -> str:
    rows = [tuple(row) for row in rows]
    decimals = [_decimals([row[column] for row in rows]) for column in range(len(columns))]
    kinds = ["" if n is None else " class=n" for n in decimals]
    head = "".join(f"<th scope=col{kind}>{text(name)}</th>" for name, kind in zip(columns, kinds, strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, row, decimals))}</tr>\n" for row in rows)
    return f"<table{kind}><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"


def _decimals(values: Sequence[object]) -> int | None:
    """How many decimals show three digits of the largest number, and how the numbers differ. None for text."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if not numbers or len(numbers) + values.count(None) < len(values):
        return None
    finite = [value for value in numbers if math.isfinite(value)]
    largest = max(map(abs, finite), default=0)
    if largest == 0 or all(isinstance(value, int) for value in numbers):
        return 0
    spread = max(finite) - min(finite) or largest
    return max(0, 2 - math.floor(math.log10(largest)), min(MOST_DECIMALS, 1 - math.floor(math.log10(spread))))


def _cell(value: object, decimals: int | None) -> str:
    if value is None or isinstance(value, Markup):
        return f"<td>{value or ''}</td>"
    if decimals is None or not isinstance(value, int | float):
        return f"<td>{text(value)}</td>"
    shown = f"{value:,.{decimals}f}"
    exact = f"{value:.7g}"  # what is sorted by, where the shown digits do not tell all
    return f'<td class=n data-value="{exact}">{shown}</td>'
