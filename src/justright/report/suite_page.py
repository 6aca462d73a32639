"""A table of the paper, made from our runs, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from justright.benchmark.paper_table import PaperTable
from justright.benchmark.table_text import TextTable
from justright.files import write_text
from justright.report.elements import Table, render


def write_suite_page(table: PaperTable, tables: Sequence[TextTable], out: Path) -> None:
    """Write the page: every part of the table under its title, the claims last, and what speaks against the paper's."""
    doubts = sorted(
        {
            f"{row.name}, {target}: {said}"
            for row in table.rows
            for (target, _), cell in row.cells.items()
            if target in table.stands_for
            for said in cell.doubts
        }
    )
    parts = [(each.title, Table(each.columns, each.rows)) for each in tables]
    write_text(out, render("suite.html", about=table.about, profile=table.profile, parts=parts, doubts=doubts))
