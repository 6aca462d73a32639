"""A table of the paper as text: Markdown, LaTeX, CSV, and the parts that terminal and page show."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from justright.benchmark.paper_table import Cell, PaperTable
from justright.benchmark.verdicts import Verdict

DOUBTED = "?"  # stands beside a figure of the paper that cannot be right as printed
VERDICT_COLUMNS = ("claim of the paper", "here", "difference", "pairs", "paper")
NAMES = {"new_as_old": "New taken for old", "new_as_new": "New taken for new", "probe": "Transfer"}


class TextTable(NamedTuple):
    """Title, columns and rows, all text."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def text_tables(table: PaperTable, verdicts: Sequence[Verdict] = ()) -> list[TextTable]:
    """One a target, then what became of the claims."""
    found = [_of_target(table, target) for target in table.targets]
    if verdicts:
        found.append(TextTable(f"{table.name}: claims", VERDICT_COLUMNS, [each.cells() for each in verdicts]))
    return found


def _of_target(table: PaperTable, target: str) -> TextTable:
    rows = [row for row in table.rows if any(key[0] == target for key in row.cells)]
    groups = [group for group in table.groups if any((target, group) in row.cells for row in rows)]
    cells = {(row.name, group): row.cells.get((target, group)) for row in rows for group in groups}
    has_change = [group for group in groups if any((cell := cells[row.name, group]) and cell.change for row in rows)]
    has_paper = [g for g in groups if any((cell := cells[row.name, g]) and cell.paper is not None for row in rows)]
    parts: list[tuple[str, Callable[[Cell], str], list[str]]] = [
        ("{}", _count if table.is_count else _mean, groups),
        ("{}, change", _change, has_change),
        ("{}, paper", _paper_count if table.is_count else _paper, has_paper),
    ]
    columns = [form.format(_name(group)) for form, _, own in parts for group in own]
    texts = [
        (
            row.name,
            *(
                "" if (cell := cells[row.name, group]) is None else text(cell)
                for _, text, own in parts
                for group in own
            ),
        )
        for row in rows
    ]
    here = table.stands_for.get(target, "")
    title = f"{table.name}, {target}" + (f" (here: {here})" if here not in ("", target) else "")
    return TextTable(title, ("", *columns), texts)


def markdown(tables: Sequence[TextTable]) -> str:
    """Every table under its title."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    parts = [
        "\n".join(
            [f"**{each.title}**", "", line(each.columns), "|" + "---|" * len(each.columns), *map(line, each.rows)]
        )
        for each in tables
    ]
    return "\n\n".join(parts) + "\n"


def latex(tables: Sequence[TextTable]) -> str:
    """Every table as a tabular in a table environment; needs booktabs."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(ESCAPES.get(letter, letter) for letter in cell) for cell in cells) + r" \\"

    parts = []
    for each in tables:
        head = [r"\begin{table}", rf"\caption{{{line([each.title])[:-3]}}}"]
        head += [rf"\begin{{tabular}}{{{'l' * len(each.columns)}}}", r"\toprule", line(each.columns), r"\midrule"]
        parts.append("\n".join([*head, *map(line, each.rows), r"\bottomrule", r"\end{tabular}", r"\end{table}"]))
    return "\n\n".join(parts) + "\n"


ESCAPES = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {"±": r"$\pm$", "\\": r"\textbackslash{}"}
CSV_COLUMNS = (
    *("table", "profile", "method", "row", "role", "target", "here", "group", "mean", "spread", "runs"),
    *("change", "change low", "change high", "paper", "paper change", "doubts"),
)


def as_csv(table: PaperTable) -> str:
    """A row for every number of the table; what is not there stays empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in table.rows:
        for (target, group), cell in row.cells.items():
            where = (
                row.method,
                row.row,
                "guide" if row.is_guide else "rival",
                target,
                table.stands_for.get(target, ""),
            )
            numbers = (cell.mean, cell.spread, cell.n, *(cell.change or ("", "", "")), cell.paper, cell.paper_change)
            texts = [f"{each:.2f}" if isinstance(each, float) and math.isfinite(each) else each for each in numbers]
            plain = ["" if each is None or each != each else each for each in texts]
            writer.writerow([table.name, table.profile, *where, group, *plain, "; ".join(cell.doubts)])
    return out.getvalue()


def _name(group: str) -> str:
    return NAMES.get(group, group.capitalize().replace("_", " "))


def _mean(cell: Cell) -> str:
    return f"{cell.mean:.1f}" + (f" ±{cell.spread:.1f}" if math.isfinite(cell.spread) else "")


def _count(cell: Cell) -> str:
    return f"{cell.mean:,.0f}"


def _change(cell: Cell) -> str:
    return "" if cell.change is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*cell.change)


def _paper(cell: Cell) -> str:
    if cell.paper is None:
        return ""
    moved = "" if cell.paper_change is None else f" ({cell.paper_change:+.1f})"
    return f"{cell.paper:.1f}{moved}{DOUBTED * bool(cell.doubts)}"


def _paper_count(cell: Cell) -> str:
    return "" if cell.paper is None else f"{cell.paper:,.0f}"
