"""A table or figure of the paper, made from our runs, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from justright.benchmark.paper_table import PaperTable
from justright.benchmark.table_text import IN_DOUBT, TextTable, notes
from justright.files import write_text
from justright.report.elements import Table, render
from justright.report.paper_figures import draw_paper


def write_suite_page(table: PaperTable, tables: Sequence[TextTable], claims: TextTable | None, out: Path) -> None:
    """Write the page: claims and figure first, every part of the table under its title, what speaks against the paper.

    Parameters:
        tables: the parts of the table as text, without the claims.
        claims: what became of each claim.
    """
    drawn, caption = draw_paper(table)
    parts = [(each.title, _shown(each)) for each in tables]
    values = {"about": table.about, "profile": table.profile, "notes": notes(table), "doubts": table.doubts}
    page = {"parts": parts, "claims": claims and _shown(claims), "drawn": drawn, "caption": caption}
    write_text(out, render("suite.html", **values, **page, in_doubt=IN_DOUBT))


def _shown(table: TextTable) -> Table:
    return Table(table.columns, table.rows)
