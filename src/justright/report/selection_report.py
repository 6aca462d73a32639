"""The pictures and the page of a selection, written where they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from justright.diagnosis.verdict import Diagnosis
from justright.evaluation.figures import to_svg
from justright.files import write_text
from justright.report.example_sheet import draw_sheet, example_sheet
from justright.report.selection_figures import draw_selection
from justright.report.selection_page import selection_page
from justright.runs.selection_result import SelectionResult


def write_selection_report(
    result: SelectionResult,
    asked: Mapping[str, object],
    diagnosis: Diagnosis | None = None,
    figures: Path | None = None,
    page: Path | None = None,
    seed: int = 0,
) -> tuple[list[Path], str]:
    """Write `weights.svg` or `ranked.svg` and `examples.svg` into a directory, and all of it as one page.

    Gives the files written, and why there are no example images, if so.
    """
    drawn = {name: to_svg(figure) for name, figure in draw_selection(result).items()}
    sheet = example_sheet(result, seed=seed)
    documents: dict[Path, str] = {}
    if figures is not None:
        documents |= {figures / f"{name}.svg": svg for name, svg in drawn.items()}
        if not sheet.problem:
            documents[figures / "examples.svg"] = draw_sheet(sheet)
    if page is not None:
        documents[page] = selection_page(result, asked, drawn, sheet, diagnosis)
    for path, text in documents.items():
        write_text(path, text)
    return list(documents), sheet.problem
