"""A table of the paper as text: Markdown, LaTeX, and the parts that terminal and page show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from justright.benchmark.paper_table import Cell, PaperTable
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
    if table.is_count:
        parts = [_of_target(table, target) for target in table.targets]
        rows = [
            (table.label(target), *row[1:])
            for target, part in zip(table.targets, parts, strict=True)
            for row in part.rows
        ]
        return [TextTable(f"{table.name}: images and classes", parts[0].columns, rows)] if rows else []
    return [found for target in table.targets if (found := _of_target(table, target)).rows]


def claims_table(table: PaperTable, verdicts: Sequence[Verdict]) -> TextTable | None:
    """What became of the claims; None where the paper makes none."""
    rows = [each.cells() for each in verdicts]
    return TextTable(f"{table.name}: claims", VERDICT_COLUMNS, rows) if rows else None


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
    rows = [row for row in table.rows if any(key[0] == target for key in row.cells)]
    groups = [group for group in table.groups if any((target, group) in row.cells for row in rows)]
    cells = {(row.name, group): row.cells.get((target, group)) for row in rows for group in groups}
    has_change = [group for group in groups if any((cell := cells[row.name, group]) and cell.change for row in rows)]
    has_paper = [g for g in groups if any((cell := cells[row.name, g]) and cell.paper is not None for row in rows)]
    parts: list[tuple[str, str, Callable[[Cell], str]]] = []  # group, heading and text: the paper's beside ours
    for group in groups:
        parts.append((group, _name(group), _count if table.is_count else _mean))
        if group in has_change:
            parts.append((group, f"{_name(group)}, change", _change))
        if group in has_paper:
            parts.append((group, f"{_name(group)}, paper", _paper_count if table.is_count else _paper))
    texts = [
        (row.name, *("" if (cell := cells[row.name, group]) is None else text(cell) for group, _, text in parts))
        for row in rows
    ]
    return TextTable(f"{table.name}, {table.label(target)}", ("", *(heading for _, heading, _ in parts)), texts)


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


def _name(group: str) -> str:
    return NAMES.get(group, group.capitalize().replace("_", " "))


def mean_text(mean: float, spread: float) -> str:
    """A mean and its spread, where there is one."""
    return f"{mean:.1f}" + (f" ±{spread:.1f}" if math.isfinite(spread) else "")


def _mean(cell: Cell) -> str:
    return mean_text(cell.mean, cell.spread)


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
    return "" if cell.paper is None else f"{cell.paper:,.0f}{DOUBTED * bool(cell.doubts)}"
