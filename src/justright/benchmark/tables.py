"""Tables as text: Markdown, LaTeX, CSV and JSON records."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from justright.benchmark.claims import Verdict
from justright.benchmark.paper import Cell, PaperTable
from justright.benchmark.summary import PERCENT, PROBLEM_COLUMNS, Record, SettingRow, difference_text
from justright.evaluation.scores import GROUPS

DOUBTED = "?"  # marks a figure of the paper that cannot be right as printed
IN_DOUBT = "Figures of the paper in doubt"
SETTING_COLUMNS = (
    "setting", "problems", "runs", "All", "Old", "New", "All against baseline", "New against baseline", "better",
)  # fmt: skip
VERDICT_COLUMNS = ("claim", "here", "difference", "problems", "paper")
NAMES = {"new_as_old": "New taken for old", "new_as_new": "New taken for new", "probe": "Transfer"}
RECORD_COLUMNS = (
    "table", "profile", "method", "row", "role", "target", "here", "group", "mean", "spread", "runs", "change",
    "change low", "change high", "paper", "paper change", "doubts",
)  # fmt: skip
CSV_COLUMNS = (*RECORD_COLUMNS, "claim", "verdict", "problems", "paper excluded")
LATEX_ESCAPES = {letter: f"\\{letter}" for letter in "&%$#_{}"}
LATEX_ESCAPES |= {"±": r"$\pm$", "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


class TextTable(NamedTuple):
    """Title, columns and rows, all text."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def text_tables(table: PaperTable) -> list[TextTable]:
    """One table per target with runs; counts of all targets in one table."""
    parts = {target: part for target in table.targets if (part := _target_table(table, target)).rows}
    if not (parts and table.is_count):
        return list(parts.values())
    rows = [(table.label(target), *row[1:]) for target, part in parts.items() for row in part.rows]
    return [TextTable(f"{table.name}: images and classes", next(iter(parts.values())).columns, rows)]


def problem_tables(rows: Sequence[Record]) -> list[TextTable]:
    """One table per problem from `problem_rows`: setting, runs, accuracies, categories in use."""
    columns = ("setting", "runs", "All", "Old", "New", "categories in use")
    titles = {row["problem"]: f"{row['problem']} ({row['part']})" if row["part"] else row["problem"] for row in rows}
    return [
        TextTable(title, columns, [_problem_cells(row) for row in rows if row["problem"] == problem])
        for problem, title in titles.items()
    ]


def _problem_cells(row: Record) -> tuple[str, ...]:
    scores = ["" if row[group] is None else mean_text(row[group], row[f"{group} spread"]) for group in GROUPS]
    if row["categories in use"] is None:
        used = ""
    else:
        used = " of ".join(f"{row[name]:.1f}".removesuffix(".0") for name in ("categories in use", "categories"))
    return (row["setting"], str(row["runs"]), *scores, used)


def settings_table(title: str, rows: Sequence[SettingRow]) -> TextTable:
    """A row per setting: its means over problems in percent, and its change against the baseline."""
    cells = []
    for row in rows:
        means = ["" if mean is None else f"{PERCENT * mean:.1f}" for mean in (row.all, row.old, row.new)]
        changes = [difference_text(change, PERCENT) for change in (row.all_difference, row.new_difference)]
        better = "" if row.all_difference is None else f"{row.n_better} of {row.n_problems}"
        cells.append((row.setting, str(row.n_problems), str(row.n_runs), *means, *changes, better))
    return TextTable(title, SETTING_COLUMNS, cells)


def claims_table(name: str, verdicts: Sequence[Verdict]) -> TextTable | None:
    """The verdict on each claim of a suite; None if it has no claims."""
    if not verdicts:
        return None
    return TextTable(f"{name}: claims", VERDICT_COLUMNS, [verdict.cells() for verdict in verdicts])


def notes(table: PaperTable) -> list[str]:
    """Sentences to show below the table: how to read it, and which runs are missing."""
    if table.is_count:
        return [f"{DOUBTED}: cannot be right as printed."] if table.doubts else []
    against = list(dict.fromkeys(row.against for row in table.rows if row.against))
    unfinished = [f"{row.name} ({row.n_runs} of {row.n_wanted})" for row in table.rows if row.n_runs < row.n_wanted]
    sentences = ["In percent: mean and standard deviation over seeds."]
    if against:
        sentences.append(f"Change: against {' or '.join(against)}, paired by seed, with its 95 % interval.")
    if any(row.is_guide for row in table.rows):
        sentences.append(
            "(guide): classes of the pool only guide and all own ones count, as in justright discover; "
            "without it classes of the pool are categories too, as in the paper."
        )
    if table.doubts:
        sentences.append(f"{DOUBTED}: cannot be right as printed in the paper.")
    if unfinished:
        sentences.append(f"Runs so far: {', '.join(unfinished)}.")
    return sentences


def _target_table(table: PaperTable, target: str) -> TextTable:
    """Our mean, its change and the paper's figure for each group; columns without any value are left out."""
    rows = [row for row in table.rows if any(key[0] == target for key in row.cells)]
    columns: dict[str, list[str]] = {}
    for group in table.groups:
        cells = [row.cells.get((target, group)) for row in rows]
        texts = [("", "", "") if cell is None else _texts(cell, table.is_count) for cell in cells]
        name = NAMES.get(group, group.capitalize().replace("_", " "))
        for place, heading in enumerate((name, f"{name}, change", f"{name}, paper")):
            if any(column := [text[place] for text in texts]):
                columns[heading] = column
    lines = list(zip((row.name for row in rows), *columns.values(), strict=True))
    return TextTable(f"{table.name}, {table.label(target)}", ("", *columns), lines)


def markdown(tables: Sequence[TextTable], notes: Sequence[str] = (), doubts: Sequence[str] = ()) -> str:
    """Every table under its title, how to read them, and the figures of the paper in doubt."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    parts = []
    for title, columns, rows in tables:
        parts.append("\n".join([f"**{title}**", "", line(columns), "|" + "---|" * len(columns), *map(line, rows)]))
    if notes:
        parts.append(" ".join(notes))
    if doubts:
        parts.append("\n".join([f"**{IN_DOUBT}**", "", *(f"- {doubt}" for doubt in doubts)]))
    return "\n\n".join(parts) + "\n"


def latex(tables: Sequence[TextTable], notes: Sequence[str] = (), doubts: Sequence[str] = ()) -> str:
    """Every table as a tabular in a table environment; needs booktabs. Notes and doubts follow as comments."""

    def escaped(text: str) -> str:
        return "".join(LATEX_ESCAPES.get(letter, letter) for letter in text)

    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(escaped, cells)) + r" \\"

    parts = []
    for title, columns, rows in tables:
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{escaped(title)}}}"]
        lines += [rf"\begin{{tabular}}{{{'l' * len(columns)}}}", r"\toprule", line(columns), r"\midrule"]
        lines += map(line, rows)
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        parts.append("\n".join(lines))
    comments = [*notes, f"{IN_DOUBT}:", *doubts] if doubts else notes
    if comments:
        parts.append("\n".join(f"% {comment}" for comment in comments))
    return "\n\n".join(parts) + "\n"


def mean_text(mean: float, spread: float | None) -> str:
    """A mean and its spread, if there is one."""
    return f"{mean:.1f}" + ("" if spread is None or math.isnan(spread) else f" ±{spread:.1f}")


def _texts(cell: Cell, is_count: bool) -> tuple[str, str, str]:
    """Our mean, its change and the paper's figure; empty for a missing one."""
    ours = f"{cell.mean:,.0f}" if is_count else mean_text(cell.mean, cell.spread)
    paper = ""
    if cell.paper is not None:
        paper = f"{cell.paper:,.0f}" if is_count else f"{cell.paper:.1f}"
        if cell.paper_change is not None:
            paper += f" ({cell.paper_change:+.1f})"
        if cell.doubts:
            paper += DOUBTED
    return ours, difference_text(cell.change), paper


def records(table: PaperTable) -> list[Record]:
    """Every number of the table with its row and column, by the names of `RECORD_COLUMNS`; None for a missing value."""
    cell_records = []
    for row in table.rows:
        role = "guide" if row.is_guide else "rival"
        for (target, group), cell in row.cells.items():
            stands_for = table.stands_for.get(target)
            place = (table.name, table.profile, row.method, row.row, role, target, stands_for, group)
            change = cell.change or (None, None, None)
            numbers = (cell.mean, cell.spread, cell.n, *change, cell.paper, cell.paper_change)
            finite = [None if number is None or not math.isfinite(number) else number for number in numbers]
            values = [*place, *finite, "; ".join(cell.doubts) or None]
            cell_records.append(dict(zip(RECORD_COLUMNS, values, strict=True)))
    return cell_records


def as_csv(table: PaperTable, verdicts: Sequence[Verdict] = ()) -> str:
    """A row for every number of the table, then one for every claim; a missing value is empty.

    The row of a claim has its difference under change, the paper's under paper change, and the pairs under runs. So the
    file is one table, and a spreadsheet can filter it by the column claim.
    """
    return _csv_text(CSV_COLUMNS, [*records(table), *(_claim_record(table, verdict) for verdict in verdicts)])


def problems_as_csv(rows: Sequence[Record]) -> str:
    """A row for every problem and setting; a missing value is empty."""
    return _csv_text(PROBLEM_COLUMNS, rows)


def _csv_text(columns: Sequence[str], records: Iterable[Record]) -> str:
    """Records as CSV, floats with two decimals."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({key: f"{value:.2f}" if isinstance(value, float) else value for key, value in record.items()})
    return out.getvalue()


def _claim_record(table: PaperTable, verdict: Verdict) -> Record:
    return {
        "table": table.name,
        "profile": table.profile,
        "method": verdict.method,
        "role": "guide" if verdict.is_guide else "rival",
        "runs": verdict.n_pairs,
        "problems": verdict.n_problems,
        "paper excluded": verdict.is_paper_excluded,
        **dict(zip(("change", "change low", "change high"), verdict.difference or (), strict=False)),
        "paper change": verdict.paper,
        "claim": verdict.claim,
        "verdict": verdict.verdict,
    }
