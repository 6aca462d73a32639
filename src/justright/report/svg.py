"""Figures inside a page: drawn once, readable on light and dark paper."""

from __future__ import annotations

import re
from html import escape

INK, LINE, PAPER = "#333333", "#b9b9b9", "#ffffff"
"""Draw with these, and `for_page` lets the page choose what they look like."""

_VARIABLES = {INK: "var(--ink)", "#000000": "var(--ink)", LINE: "var(--line)", PAPER: "var(--paper)"}


def for_page(svg: str, name: str, title: str) -> str:
    """An SVG document as an element of a page: no prolog, colors of the page, ids that begin with `name`.

    Its size follows the page. `title` is what a person who cannot see it is told.
    """
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", element)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = element.replace("url(#", f"url(#{name}-")
    element = element.replace('xlink:href="#', f'href="#{name}-').replace("xlink:href=", "href=")
    for color, variable in _VARIABLES.items():
        element = element.replace(color, variable)
    opening, _, rest = element.partition(">")
    opening = re.sub(r'\s(width|height)="[^"]*"', "", opening)
    return f'{opening} role="img" aria-label="{escape(title)}">{rest}'
