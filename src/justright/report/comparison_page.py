"""Several runs as one page: settings that differ, scores, what seeds and selection changed, curves over each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from justright.files import write_text
from justright.report.compared_run import ComparedRun
from justright.report.compared_scores import against_baseline, compared_errors, compared_scores, over_seeds
from justright.report.comparison import Comparison
from justright.report.drawing import in_page
from justright.report.names import named, plain, text
from justright.report.page_shell import contents, folded, note, page, section, shown, table
from justright.report.reading import Missing, attempt
from justright.report.training_figures import draw_training

MOST_CLASSES = 300
"""Classes whose weights are listed: those on which the runs agree least."""

MOST_CURVES = 12


@dataclass(frozen=True)
class ComparisonPage:
    """What a page of several runs shows."""

    comparison: Comparison

    def html(self) -> str:
        """The whole page."""
        parts: dict[str, tuple[str, Callable[[], str]]] = {
            "settings": ("Settings", self._settings),
            "scores": ("Scores", lambda: compared_scores(self.comparison)),
            "seeds": ("Over seeds", lambda: over_seeds(self.comparison)),
            "changes": (f"Against {self.comparison.baseline_title}", lambda: against_baseline(self.comparison)),
            "errors": ("Errors", lambda: compared_errors(self.comparison)),
            "selection": ("Selection", self._selection),
            "count": ("Number of categories", self._counts),
            "training": ("Training", self._training),
            "seconds": ("Timings", self._timings),
        }
        written = [section(title, shown(write), name) for name, (title, write) in parts.items()]
        names = ", ".join(run.name for run in self.comparison.runs[:6])
        n = len(self.comparison.runs)
        lead = f"<h1>{n} runs side by side</h1>\n<p class=lead>{named(names)}{' ...' if n > 6 else ''}</p>"
        warnings = "".join(f"<p>{text(said)}</p>" for said in self.comparison.warnings())
        titles = {name: title for name, (title, _) in parts.items()}
        return page(f"{n} runs", "\n".join([lead, warnings, contents(titles), *written]))

    def _settings(self) -> str:
        differing = self.comparison.differing()
        columns = ["setting", *(run.name for run in self.comparison.runs)]
        rows = [(name, *("" if value is None else str(value) for value in each)) for name, each in differing.items()]
        shared = self.comparison.shared()
        told = [(name, str(value)) for name, value in shared.items()]
        same = (
            folded(f"{len(shared):,} settings that all runs share", table(("setting", "value"), told)) if told else ""
        )
        return (table(columns, rows) if rows else note("All settings are equal.")) + same

    def _selection(self) -> str:
        weights: dict[str, dict[str, float]] = {}
        rows: list[tuple[object, ...]] = []
        for run in self.comparison.runs:
            saved = attempt(lambda run=run: run.run.selection, "nothing was selected")  # type: ignore[misc]
            if isinstance(saved, Missing):
                rows.append((named(run.name), None, None, None, saved.reason))
                continue
            weight = saved.classes["weight"].to_numpy()
            mean = float(saved.sample_weight.mean())
            rows.append((named(run.name), int((weight > 0).sum()), len(weight), mean, str(saved.about["selector"])))
            weights[run.name] = dict(zip(saved.classes["class_name"].to_pylist(), weight.tolist(), strict=True))
        return table(("run", "kept classes", "classes", "mean weight", "selector"), rows) + _weights(weights)

    def _counts(self) -> str:
        rows: list[tuple[object, ...]] = []
        for run in self.comparison.runs:
            about = run.run.about
            count = attempt(lambda run=run: run.run.count, "not estimated")  # type: ignore[misc]
            estimates = {} if isinstance(count, Missing) else count.get("estimates", {})
            told = [_estimate(name, said) for name, said in estimates.items()]
            k = about.get("n_target", about.get("n_categories"))
            rows.append(
                (named(run.name), k, str(about.get("k_source", "not said")), "; ".join(told) or "not estimated")
            )
        return table(("run", "K used", "source", "estimates"), rows)

    def _training(self) -> str:
        records = {plain(run.name): run.run.metrics for run in self.comparison.runs[:MOST_CURVES] if run.run.metrics}
        if not records:
            return note("No run has training records.")
        left = len(self.comparison.runs) - MOST_CURVES
        said = note(f"{left:,} more runs are not drawn.") if left > 0 else ""
        caption = "What training reported, epoch by epoch, one line a run."
        return in_page(draw_training(records), "training", caption, is_broad=True) + said

    def _timings(self) -> str:
        stages = dict.fromkeys(name for run in self.comparison.runs for name in _seconds(run))
        rows = [
            (named(run.name), *(_seconds(run).get(stage) for stage in stages), sum(_seconds(run).values()))
            for run in self.comparison.runs
        ]
        return table(("run", *(f"{stage} s" for stage in stages), "all s"), rows)


def write_comparison(comparison: Comparison, out: Path) -> None:
    """Write the page."""
    write_text(out, ComparisonPage(comparison).html())


def _estimate(name: str, said: Mapping[str, Any]) -> str:
    interval = said.get("interval")
    return f"{name}: {said.get('n_categories')}" + (f" ({interval[0]} to {interval[1]})" if interval else "")


def _seconds(run: ComparedRun) -> dict[str, float]:
    found = run.run.about.get("seconds") or {}
    return {str(name): float(value) for name, value in found.items() if isinstance(value, int | float)}


def _weights(weights: dict[str, dict[str, float]]) -> str:
    """The classes on which the runs agree least."""
    if len(weights) < 2:
        return ""
    names = [name for name in next(iter(weights.values())) if all(name in each for each in weights.values())]
    table_of = np.array([[each[name] for each in weights.values()] for name in names]).reshape(-1, len(weights))
    order = np.argsort(-np.ptp(table_of, axis=1), kind="stable")[:MOST_CLASSES]
    if not len(order) or np.ptp(table_of[order[0]]) == 0:
        return note("All runs that selected weigh every class alike.")
    rows = [(named(names[row]), *table_of[row].tolist()) for row in order.tolist()]
    listed = table(("class", *weights), rows, is_sortable=True, search="Search classes")
    left = (
        note(f"{len(names) - len(rows):,} classes with smaller differences are left out.")
        if len(names) > len(rows)
        else ""
    )
    return folded("Weights by class, the largest differences first", listed + left)
