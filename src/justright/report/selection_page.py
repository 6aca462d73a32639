"""A selection as one page: what was asked, what came out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

from justright.diagnosis.verdict import COLUMNS, Diagnosis
from justright.report.class_cards import cut_in_the_middle
from justright.report.example_sheet import ClassExamples, ExampleSheet
from justright.report.page_shell import facts, note, page, section, table
from justright.report.svg import for_page
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
    """What a page shows. `asked` is what the person gave, `figures` are SVG documents by name."""

    result: SelectionResult
    asked: Mapping[str, object]
    figures: Mapping[str, str] = field(default_factory=dict)
    sheet: ExampleSheet | None = None
    diagnosis: Diagnosis | None = None

    def html(self) -> str:
        """The whole page."""
        lead = f"<h1>Which labeled classes to learn from</h1>\n<p class=lead>{escape(self.result.summary())}.</p>"
        if self.result.outlook is not None:
            lead += f"\n<p>{escape(self.result.outlook.sentence())}</p>"
        parts = [
            lead,
            section("What was asked", facts(self.asked)),
            section("By data set", table(self.result.source_columns(), self.result.source_cells())),
        ]
        drawn = [self._figure(name, svg) for name, svg in self.figures.items()]
        if drawn:
            parts.append(section("Why", "\n".join(drawn)))
        if self.sheet is not None:
            parts.append(section("Examples", _examples(self.sheet)))
        if self.diagnosis is not None:
            parts.append(section("Would another selection do better?", _diagnosis(self.diagnosis)))
        parts.append(section("Classes", self._classes()))
        return page(f"Selection: {self.result.name}", "\n".join(parts))

    def _figure(self, name: str, svg: str) -> str:
        caption = CAPTIONS[name]
        return f"<figure>{for_page(svg, name, caption)}<figcaption>{caption}</figcaption></figure>"

    def _classes(self) -> str:
        rows = self.result.classes.to_pylist()
        rows.sort(key=lambda row: -row["weight"])
        has_stability = self.result.stability is not None
        measure = self.result.measure
        columns = ["class", "images", "weight", *([measure] if measure else []), "reason"]
        columns += ["kept in resamples %", "weight varies by"] if has_stability else []
        cut, n_left = cut_in_the_middle(rows, MOST_CLASSES)
        said = note(f"{n_left:,} classes in the middle are left out here.") if n_left else ""
        shown = [
            (row["class_name"], row["n_images"], row["weight"])
            + ((row[measure],) if measure else ())
            + (row["reason"],)
            + ((round(100 * row["kept_share"]), row["weight_std"]) if has_stability else ())
            for row in cut
        ]
        return said + table(columns, shown, is_sortable=True)


def _examples(sheet: ExampleSheet) -> str:
    if sheet.problem:
        return note(f"No images to show: {sheet.problem}")
    ends = [f"<div><h3>{title}</h3>{''.join(map(_class, classes))}</div>" for title, classes in sheet.parts]
    return f"<div class=ends>{''.join(ends)}</div>"


def _class(each: ClassExamples) -> str:
    images = "".join(f'<img src="{uri}" alt="" width=88 height=88>' for uri in each.thumbnails)
    said = f"<b>{escape(each.class_name)}</b><br><span class=soft>{escape(each.reason)}</span>"
    return f"<div class=class>{said}<div class=thumbs>{images}</div></div>"


def _diagnosis(diagnosis: Diagnosis) -> str:
    notes = note(diagnosis.how()) + note(diagnosis.caveat)
    return f"<p>{escape(diagnosis.verdict)}</p>{table(COLUMNS, diagnosis.cells())}{notes}"
