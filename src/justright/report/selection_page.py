"""A selection as one page: what was asked, what came out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from justright.diagnosis.verdict import COLUMNS, Diagnosis
from justright.report.elements import Table, cut_in_the_middle
from justright.report.example_sheet import ExampleSheet
from justright.report.rendering import render
from justright.runs.selection_result import SelectionResult

MOST_CLASSES = 4000
"""A longer table of classes is cut in the middle: the page stays within a few megabytes."""

CAPTIONS = {
    "weights": "Each mark is a class of the pool: how similar it is to the target, and what it weighs. Below, how many "
    "classes of each data set lie where.",
    "ranked": "Each mark is a class of the pool. Filled ones are kept, hollow ones are left out. Below, how many "
    "classes of each data set lie where.",
}


@dataclass(frozen=True)
class SelectionPage:
    """What a page shows.

    result     what was decided about every class
    asked      what the person gave
    figures    SVG documents by name
    sheet      images of the classes that weigh most and least
    diagnosis  whether another selection would do better
    """

    result: SelectionResult
    asked: Mapping[str, object]
    figures: Mapping[str, str] = field(default_factory=dict)
    sheet: ExampleSheet | None = None
    diagnosis: Diagnosis | None = None

    def html(self) -> str:
        """The whole page."""
        classes, n_left_out = self._classes()
        return render(
            "selection.html",
            result=self.result,
            asked=self.asked,
            sources=Table(self.result.source_columns(), self.result.source_cells()),
            figures=self.figures,
            captions=CAPTIONS,
            sheet=self.sheet,
            diagnosis=self.diagnosis,
            settings=None if self.diagnosis is None else Table(COLUMNS, self.diagnosis.cells()),
            classes=classes,
            n_left_out=n_left_out,
        )

    def _classes(self) -> tuple[Table, int]:
        """What was decided about each class, and how many are left out."""
        rows = sorted(self.result.class_table.to_pylist(), key=lambda row: -row["weight"])
        shown, n_left_out = cut_in_the_middle(rows, MOST_CLASSES)
        columns = {"class": "class_name", "images": "n_images", "weight": "weight"}
        columns |= {self.result.measure: self.result.measure} if self.result.measure else {}
        columns["reason"] = "reason"
        if self.result.stability is not None:
            columns |= {"kept in resamples %": "kept_share", "weight varies by": "weight_std"}
            shown = [row | {"kept_share": round(100 * row["kept_share"])} for row in shown]
        return Table(tuple(columns), [[row[name] for name in columns.values()] for row in shown]), n_left_out
