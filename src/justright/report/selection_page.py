"""A selection as one page: what was asked, what came out, and why."""

from __future__ import annotations

from collections.abc import Mapping

from justright.diagnosis.verdict import COLUMNS, Diagnosis
from justright.report.elements import Table, cut_in_the_middle
from justright.report.example_sheet import ExampleSheet
from justright.report.rendering import render
from justright.runs.selection_result import SelectionResult

MOST_CLASSES = 4000  # a longer table of classes is cut in the middle: the page stays within a few megabytes


def selection_page(
    result: SelectionResult,
    asked: Mapping[str, object],
    figures: Mapping[str, str],
    sheet: ExampleSheet | None = None,
    diagnosis: Diagnosis | None = None,
) -> str:
    """The whole page. `asked` is what the person gave, `figures` are SVG documents by name."""
    rows = sorted(result.classes.to_pylist(), key=lambda row: -row["weight"])
    shown, n_left_out = cut_in_the_middle(rows, MOST_CLASSES)
    columns = {"class": "class_name", "images": "n_images", "weight": "weight"}
    columns |= {result.measure: result.measure} if result.measure else {}
    columns["reason"] = "reason"
    if result.stability is not None:
        columns |= {"kept in resamples %": "kept_share", "weight varies by": "weight_std"}
        shown = [row | {"kept_share": round(100 * row["kept_share"])} for row in shown]
    return render(
        "selection.html",
        result=result,
        asked=asked,
        sources=Table(result.source_columns(), result.source_cells()),
        figures=figures,
        sheet=sheet,
        diagnosis=diagnosis,
        settings=None if diagnosis is None else Table(COLUMNS, diagnosis.cells()),
        classes=Table(tuple(columns), [[row[name] for name in columns.values()] for row in shown]),
        n_left_out=n_left_out,
    )
