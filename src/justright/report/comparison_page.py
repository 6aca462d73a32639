"""Several runs as one page: the verdict first, then what seeds and selection changed, and settings that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from justright.evaluation import break_down
from justright.evaluation.scores import GROUPS, LEVEL
from justright.report.comparison import Comparison
from justright.report.elements import Missing, Name, Table, Values, attempt, optional, plain, read_parts, render
from justright.report.error_figures import draw_errors
from justright.report.run_figures import draw_scores, draw_training
from justright.report.score_parts import judged, percent
from justright.report.seed_groups import ScoreChange, mean_and_spread
from justright.utils.files import write_text

MOST_CLASSES = 300  # classes whose weights are listed: those on which the runs agree least
MOST_DRAWN = 12  # runs whose errors and curves are drawn


def write_comparison(comparison: Comparison, out: Path) -> None:
    """Write the page."""
    write_text(out, ComparisonPage(comparison).html())


@dataclass(frozen=True)
class ComparisonPage:
    """Reads what each part of a page of several runs shows."""

    comparison: Comparison

    def html(self) -> str:
        """The whole page."""
        verdict, *parts = read_parts(
            {
                "verdict": ("Verdict", self.verdict),
                "changes": (f"Against {self.comparison.baseline_title}", self.changes),
                "agreement": ("Agreement", self.comparison.agreement.values),
                "scores": ("Scores", self.scores),
                "seeds": ("Over seeds", self.seeds),
                "errors": ("Errors", self.errors),
                "selection": ("Selection", self.selection),
                "count": ("Number of categories", self.count),
                "training": ("Training", self.training),
                "settings": ("Settings", self.settings),
                "seconds": ("Timings", self.seconds),
            }
        )
        names, warnings = [run.name for run in self.comparison.runs], self.comparison.warnings()
        return render("comparison.html", names=names, warnings=warnings, verdict=verdict.values, parts=parts)

    def verdict(self) -> Values:
        """What selection changed on New images, its best and its worst, and which run has the highest All."""
        changes = [(group, each) for group, found in self.comparison.changes() for each in found if each.group == "new"]
        ranked = sorted(changes, key=lambda change: -change[1].points)
        ends = [*ranked[:1], *(ranked[1:] and ranked[-1:])]
        judged_runs = [(run.name, run.scores) for run in self.comparison.runs if run.scores is not None]
        best = max(judged_runs, key=lambda run: run[1].all, default=None)
        return {
            "n_better": sum(each.low > 0 for _, each in changes),
            "n_worse": sum(each.high < 0 for _, each in changes),
            "n_settings": len(changes),
            "ends": [(Name(group.name), str(each), each.verdict()) for group, each in ends],
            "best": best and (Name(best[0]), percent(best[1], "all")),
            "baseline": self.comparison.baseline_title,
            "figure": draw_scores(self.comparison) if judged_runs else None,
            "pairs": self._least_and_most_agreement(),
        }

    def _least_and_most_agreement(self) -> list[tuple[Name, Name, str]]:
        """The two runs that agree least and the two that agree most, if there are more."""
        ranked = sorted(self.comparison.agreement.pairs, key=lambda pair: pair.share)
        ends = [*ranked[:1], *(ranked[1:] and ranked[-1:])]
        return [(Name(pair.names[0]), Name(pair.names[1]), str(pair)) for pair in ends]

    def settings(self) -> Values:
        differing = self.comparison.differing()
        rows = [(name, *("" if value is None else str(value) for value in each)) for name, each in differing.items()]
        shared = [(name, str(value)) for name, value in self.comparison.shared().items()]
        columns = ["setting", *(run.name for run in self.comparison.runs)]
        return {"differing": Table(columns, rows), "shared": Table(("setting", "value"), shared)}

    def scores(self) -> Values | None:
        rows = [
            (Name(run.name), *(percent(run.scores, group) for group in GROUPS), run.scores.nmi, run.scores.ari)
            for run in self.comparison.runs
            if run.scores is not None
        ]
        return {"accuracies": Table(("run", "All %", "Old %", "New %", "NMI", "ARI"), rows)} if rows else None

    def seeds(self) -> Values | None:
        rows = [
            (Name(group.name), group.selector, len(group.runs), *map(mean_and_spread, map(group.values, GROUPS)))
            for group in self.comparison.groups()
            if len(group.runs) > 1
        ]
        has_values = any(any(row[3:]) for row in rows)
        return {"groups": Table(("runs", "selector", "seeds", "All", "Old", "New"), rows)} if has_values else None

    def changes(self) -> Values | None:
        changes = self.comparison.changes()
        rows = [(Name(group.name), group.selector, *_cells(each)) for group, found in changes for each in found]
        if not rows:
            return None
        return {
            "changes": Table(("runs", "selector", "images of", "change", "seeds / without", "verdict"), rows),
            "baseline": self.comparison.baseline_title,
            "level": LEVEL,
        }

    def errors(self) -> Values | None:
        pairs = {plain(run.name): judged(run.run) for run in self.comparison.runs[:MOST_DRAWN]}
        judged_runs = {name: pair for name, pair in pairs.items() if not isinstance(pair, Missing)}
        found = {name: break_down(pair.y_true, pair.y_pred, pair.is_old) for name, pair in judged_runs.items()}
        if not found:
            return None
        counts = {name: errors.by_kind() | errors.by_cause() for name, errors in found.items()}
        columns = ("run", *(kind.replace("_", " ") for kind in next(iter(counts.values()))))
        kinds = Table(columns, [(Name(name), *each.values()) for name, each in counts.items()])
        return {"figure": draw_errors(found), "kinds": kinds}

    def selection(self) -> Values | None:
        weights: dict[str, dict[str, float]] = {}
        rows: list[tuple[object, ...]] = []
        for run in self.comparison.runs:
            saved = attempt(lambda run=run: run.run.selection, "nothing was selected")  # type: ignore[misc]
            if isinstance(saved, Missing):
                rows.append((Name(run.name), None, None, None, saved.reason))
                continue
            weight = saved.classes["weight"].to_numpy()
            mean = float(saved.sample_weight.mean())
            rows.append((Name(run.name), int((weight > 0).sum()), len(weight), mean, str(saved.about["selector"])))
            weights[run.name] = dict(zip(saved.classes["class_name"].to_pylist(), weight.tolist(), strict=True))
        if not weights:
            return None
        selections = Table(("run", "kept classes", "classes", "mean weight", "selector"), rows)
        return {"selections": selections, "n_selected": len(weights)} | _disagreement(weights)

    def count(self) -> Values:
        rows = []
        for run in self.comparison.runs:
            about = run.run.about
            count = optional(lambda run=run: run.run.count) or {}  # type: ignore[misc]
            said = "; ".join(_estimate(name, each) for name, each in count.get("estimates", {}).items())
            k = about.get("n_target", about.get("n_categories"))
            rows.append((Name(run.name), k, str(about.get("k_source", "not said")), said or "not estimated"))
        return {"counts": Table(("run", "K used", "source", "estimates"), rows)}

    def training(self) -> Values | None:
        records = {
            plain(run.name if seed == "this run" else f"{run.name}, {seed}"): each
            for run in self.comparison.runs[:MOST_DRAWN]
            for seed, each in run.run.curves.get("", {}).items()
        }
        if not records:
            return None
        return {"figure": draw_training(records), "n_left_out": max(0, len(self.comparison.runs) - MOST_DRAWN)}

    def seconds(self) -> Values | None:
        seconds = {run.name: run.run.about.get("seconds") or {} for run in self.comparison.runs}
        stages = list(dict.fromkeys(stage for each in seconds.values() for stage in each))
        rows = [(Name(name), *map(each.get, stages), sum(each.values())) for name, each in seconds.items()]
        if not stages:
            return None
        return {"stages": Table(("run", *(f"{stage} s" for stage in stages), "all s"), rows)}


def _cells(change: ScoreChange) -> tuple[str, ...]:
    seeds = f"{change.n_seeds} / {change.n_baseline_seeds}"
    return change.group.capitalize(), str(change), seeds, change.verdict()


def _estimate(name: str, said: Mapping[str, Any]) -> str:
    interval = said.get("interval")
    return f"{name}: {said.get('n_categories')}" + (f" ({interval[0]} to {interval[1]})" if interval else "")


def _disagreement(weights: Mapping[str, Mapping[str, float]]) -> Values:
    """The classes whose weights differ most; no row where the runs agree."""
    names = [name for name in next(iter(weights.values()), {}) if all(name in each for each in weights.values())]
    values = np.array([[each[name] for each in weights.values()] for name in names]).reshape(len(names), len(weights))
    spread = np.ptp(values, axis=1) if values.size else np.zeros(0)
    order = np.argsort(-spread, kind="stable")[:MOST_CLASSES].tolist() if spread.any() else []
    rows = [(Name(names[row]), *values[row].tolist()) for row in order]
    return {"weights": Table(("class", *weights), rows), "n_classes": len(names)}
