"""A table of the paper as records: for CSV, and for programs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from justright.benchmark.paper_table import PaperTable
from justright.benchmark.verdicts import Verdict

Record = dict[str, Any]  # by the name of the column; None for what is not there

RECORD_COLUMNS = (
    *("table", "profile", "method", "row", "role", "target", "here", "group", "mean", "spread", "runs"),
    *("change", "change low", "change high", "paper", "paper change", "doubts"),
)
CSV_COLUMNS = (*RECORD_COLUMNS, "claim", "verdict")


def records(table: PaperTable) -> list[Record]:
    """Every number of the table with where it stands, by the names of `RECORD_COLUMNS`; None for what is not there."""
    found = []
    for row in table.rows:
        role = "guide" if row.is_guide else "rival"
        for (target, group), cell in row.cells.items():
            where = (table.name, table.profile, row.method, row.row, role, target, table.stands_for.get(target))
            change = cell.change or (None, None, None)
            numbers = (cell.mean, cell.spread, cell.n, *change, cell.paper, cell.paper_change)
            finite = [None if each is None or not math.isfinite(each) else each for each in numbers]
            values = (*where, group, *finite, "; ".join(cell.doubts) or None)
            found.append(dict(zip(RECORD_COLUMNS, values, strict=True)))
    return found


def as_csv(table: PaperTable, verdicts: Sequence[Verdict] = ()) -> str:
    """A row for every number of the table, then one for every claim; what is not there stays empty.

    A row of a claim has its difference under change, the paper's under paper change, and the pairs under runs, so that
    the file is one table, which a spreadsheet filters by the column claim.
    """
    return csv_text(CSV_COLUMNS, [*records(table), *(_claim_record(table, each) for each in verdicts)])


def csv_text(columns: Sequence[str], found: Iterable[Record]) -> str:
    """Records under their names, two decimals for what is no whole number."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for record in found:
        writer.writerow({key: f"{each:.2f}" if isinstance(each, float) else each for key, each in record.items()})
    return out.getvalue()


def _claim_record(table: PaperTable, verdict: Verdict) -> Record:
    return {
        "table": table.name,
        "profile": table.profile,
        "method": verdict.method,
        "role": "guide" if verdict.is_guide else "rival",
        "runs": verdict.n_pairs,
        **dict(zip(("change", "change low", "change high"), verdict.difference or (), strict=False)),
        "paper change": verdict.paper,
        "claim": verdict.says,
        "verdict": verdict.verdict,
    }
