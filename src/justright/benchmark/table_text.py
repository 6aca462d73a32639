"""A table of the paper as text: Markdown, LaTeX, and the parts that terminal and page show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from justright.benchmark.paper_table import Cell, PaperTable
from justright.benchmark.suite_table import difference_text
from justright.benchmark.verdicts import Verdict

DOUBTED = "?"  # stands beside a figure of the paper that cannot be right as printed
IN_DOUBT = "Figures of the paper in doubt"
VERDICT_COLUMNS = ("claim of the paper", "here", "difference", "pairs", "paper")
NAMES = {"new_as_old": "New taken for old", "new_as_new": "New taken for new", "probe": "Transfer"}


class TextTable(NamedTuple):
    """Title, columns and rows, all text."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def text_tables(table: PaperTable) -> list[TextTable]:
    """One table for each target that something was run on; counts of all targets in one."""
    parts = {target: _of_target(table, target) for target in table.targets}
    found = [part for part in parts.values() if part.rows]
    if not (found and table.is_count):
        return found
    rows = [(table.label(target), *row[1:]) for target, part in parts.items() for row in part.rows]
    return [TextTable(f"{table.name}: images and classes", found[0].columns, rows)]


def claims_table(table: PaperTable, verdicts: Sequence[Verdict]) -> TextTable | None:
    """What became of the claims; None where the paper makes none."""
    title = f"{table.name}: claims"
    return TextTable(title, VERDICT_COLUMNS, [each.cells() for each in verdicts]) if verdicts else None


def notes(table: PaperTable) -> list[str]:
    """How to read it, and what is not there yet: sentences for below the table."""
    if table.is_count:
        return [f"{DOUBTED}: cannot be right as printed."] if table.doubts else []
    against = list(dict.fromkeys(row.against for row in table.rows if row.against))
    late = [f"{row.name} ({row.n_runs} of {row.n_wanted})" for row in table.rows if row.n_runs < row.n_wanted]
    said = ["In percent: mean and standard deviation over seeds."]
    if against:
        said.append(f"Change: against {' or '.join(against)}, paired by seed, with its 95 % interval.")
    if any(row.is_guide for row in table.rows):
        said.append(
            "(guide): classes of the pool only guide and all own ones count, as in justright discover; "
            "without it classes of the pool are categories too, as in the paper."
        )
    if table.doubts:
        said.append(f"{DOUBTED}: cannot be right as printed in the paper.")
    if late:
        said.append(f"Runs so far: {', '.join(late)}.")
    return said


def _of_target(table: PaperTable, target: str) -> TextTable:
    """Our mean, its change and the paper's figure for each group, as far as some row has them."""
    rows = [row for row in table.rows if any(key[0] == target for key in row.cells)]
    columns: dict[str, list[str]] = {}
    for group in table.groups:
        cells = [row.cells.get((target, group)) for row in rows]
        texts = [("", "", "") if cell is None else _texts(cell, table.is_count) for cell in cells]
        name = NAMES.get(group, group.capitalize().replace("_", " "))
        for place, heading in enumerate((name, f"{name}, change", f"{name}, paper")):
            if any(each[place] for each in texts):
                columns[heading] = [each[place] for each in texts]
    lines = list(zip((row.name for row in rows), *columns.values(), strict=True))
    return TextTable(f"{table.name}, {table.label(target)}", ("", *columns), lines)


def markdown(tables: Sequence[TextTable], notes: Sequence[str] = (), doubts: Sequence[str] = ()) -> str:
    """Every table under its title, how to read them, and the figures of the paper in doubt."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    parts = [
        "\n".join(
            [f"**{each.title}**", "", line(each.columns), "|" + "---|" * len(each.columns), *map(line, each.rows)]
        )
        for each in tables
    ]
    if notes:
        parts.append(" ".join(notes))
    if doubts:
        parts.append("\n".join([f"**{IN_DOUBT}**", "", *(f"- {each}" for each in doubts)]))
    return "\n\n".join(parts) + "\n"


def latex(tables: Sequence[TextTable], notes: Sequence[str] = (), doubts: Sequence[str] = ()) -> str:
    """Every table as a tabular in a table environment; needs booktabs. Notes and doubts follow as comments."""

    def escaped(text: str) -> str:
        return "".join(ESCAPES.get(letter, letter) for letter in text)

    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(escaped, cells)) + r" \\"

    parts = []
    for each in tables:
        head = [r"\begin{table}", r"\centering", rf"\caption{{{escaped(each.title)}}}"]
        head += [rf"\begin{{tabular}}{{{'l' * len(each.columns)}}}", r"\toprule", line(each.columns), r"\midrule"]
        parts.append("\n".join([*head, *map(line, each.rows), r"\bottomrule", r"\end{tabular}", r"\end{table}"]))
    remarks = [*notes, *([IN_DOUBT + ":"] if doubts else []), *doubts]
    parts += ["\n".join(f"% {each}" for each in remarks)] if remarks else []
    return "\n\n".join(parts) + "\n"


ESCAPES = {letter: f"\\{letter}" for letter in "&%$#_{}"}
ESCAPES |= {"±": r"$\pm$", "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def mean_text(mean: float, spread: float | None) -> str:
    """A mean and its spread, where there is one."""
    return f"{mean:.1f}" + ("" if spread is None or math.isnan(spread) else f" ±{spread:.1f}")


def _texts(cell: Cell, is_count: bool) -> tuple[str, str, str]:
    """Our mean, its change and the paper's figure; empty for what there is not."""
    ours = f"{cell.mean:,.0f}" if is_count else mean_text(cell.mean, cell.spread)
    paper = ""
    if cell.paper is not None:
        moved = "" if cell.paper_change is None else f" ({cell.paper_change:+.1f})"
        paper = f"{cell.paper:{',.0f' if is_count else '.1f'}}{moved}{DOUBTED * bool(cell.doubts)}"
    return ours, difference_text(cell.change), paper
