"""Hook of mkdocs: writes the options of `justright.discover` into docs/reference/python.md."""

from __future__ import annotations

from justright.runs.options import explained, option_types

PAGE, PLACE = "reference/python.md", "<!-- options -->"


def on_page_markdown(markdown: str, page, **_) -> str:
    """Put the table at its place; called by mkdocs for each page."""
    if page.file.src_uri != PAGE:
        return markdown
    options = option_types()
    rows = [f"| `{name}` | `{options[name].default!r}` | {about} |" for name, about in explained(options)]
    return markdown.replace(PLACE, "\n".join(["| option | default | meaning |", "|---|---|---|", *rows]))
