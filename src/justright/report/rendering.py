"""From values to a page: the one Jinja2 environment. Whatever a template is given is escaped.

A page is one self-contained file: no request leaves it, light and dark, narrow and wide, on screen and on paper.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from justright.report.drawing import for_page
from justright.report.elements import Name, Picture, plain, short
from justright.report.reading import Missing


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
