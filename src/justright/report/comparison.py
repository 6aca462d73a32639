"""Compare several runs on one page: verdict, changes by selection and seed, agreement, and different settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib.figure import Figure

from justright.evaluation import break_down
from justright.evaluation.scores import GROUPS, LEVEL
from justright.report.compared_runs import Agreement, ComparedRun, ScoreChange, SeedGroup, change, mean_and_spread
from justright.report.drawing import COLORS, INK, LINE, figure_with_axes, label_rows
from justright.report.elements import Missing, Name, Table, Values, attempt, optional, plain, read_parts, render, short
from justright.report.run_figures import draw_errors, draw_training
from justright.report.run_parts import judged, percent, simple_texts
from justright.report.run_report import write_report
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError
from justright.utils.files import write_text

T = TypeVar("T")

BASELINES = {"own": "own labels alone", "none": "no selection"}  # the first available one is the baseline
MOST_RUNS = 40  # of the figure of scores
MOST_DRAWN = 12  # runs in the figures of errors and training
MOST_EXPECTED = 6  # runs whose expected accuracy is on the first screen; the table of scores has all


@dataclass(frozen=True)
class Comparison:
    """Several runs, in the given order."""

    runs: tuple[ComparedRun, ...]

    @staticmethod
    def of(folders: Sequence[RunFolder]) -> Comparison:
        """Compare two runs or more."""
        if len(folders) < 2:
            raise DataError(f"{len(folders)} run to compare", expected="at least two")
        names = _short_names([folder.path.resolve().parts for folder in folders])
        return Comparison(tuple(ComparedRun(name, folder) for name, folder in zip(names, folders, strict=True)))

    def differing(self) -> dict[str, list[Any]]:
        """Settings in which the runs differ, one value per run; None if a run lacks the setting."""
        names = dict.fromkeys(name for run in self.runs for name in run.settings)
        values = {name: [run.settings.get(name) for run in self.runs] for name in names}
        return {name: each for name, each in values.items() if any(value != each[0] for value in each)}

    def shared(self) -> dict[str, Any]:
        """Settings that all runs share."""
        differing = self.differing()
        return {name: value for name, value in self.runs[0].settings.items() if name not in differing}

    def groups(self) -> list[SeedGroup]:
        """Group the runs that differ only in the seed."""
        groups: dict[str, list[ComparedRun]] = {}
        for run in self.runs:
            groups.setdefault(run.key(), []).append(run)
        return [SeedGroup(tuple(runs)) for runs in groups.values()]

    @property
    def baseline(self) -> str | None:
        """The selector that others are compared with: own labels alone, or else no selection."""
        selectors = {run.settings.get("selector") for run in self.runs}
        return next((name for name in BASELINES if name in selectors), None)

    @property
    def baseline_title(self) -> str:
        """The baseline in words."""
        return BASELINES[self.baseline or "none"]

    def changes(self) -> list[tuple[SeedGroup, list[ScoreChange]]]:
        """The score changes of each other group against the baseline with otherwise equal settings."""
        groups = self.groups()
        baselines = {
            group.runs[0].key(ignoring_selection=True): group for group in groups if group.selector == self.baseline
        }
        compared = []
        for group in groups:
            baseline = baselines.get(group.runs[0].key(ignoring_selection=True))
            if baseline is not None and baseline is not group:
                changes = [change(group, baseline, name) for name in GROUPS]
                compared.append((group, [each for each in changes if each is not None]))
        return compared

    @cached_property
    def agreement(self) -> Agreement:
        """Agreement between the runs, independent of truth."""
        return Agreement(self.runs)

    def warnings(self) -> list[str]:
        """Reasons why scores may not be comparable."""
        warnings = []
        # fingerprints include unreadable files, which may have been removed since
        if len({run.target_print for run in self.runs}) > 1 and not self.agreement.has_same_images:
            warnings.append("The runs have different target images, so their scores are not comparable.")
        protocols = {run.scores.protocol for run in self.runs if run.scores is not None}
        if len(protocols) > 1:
            warnings.append(f"Scores follow different protocols: {', '.join(sorted(protocols))}.")
        without = [run.name for run in self.runs if run.scores is None]
        if 0 < len(without) < len(self.runs):
            warnings.append(f"Without scores: {', '.join(without)}.")
        return warnings

    def to_json(self) -> dict[str, Any]:
        """Scores, changes and agreement as JSON values."""
        return {
            "runs": {run.name: None if run.scores is None else run.scores.to_dict() for run in self.runs},
            "differing": self.differing(),
            "agreement": [pair.to_json() for pair in self.agreement.pairs],
            "changes": {
                group.name: [asdict(each) | {"verdict": each.verdict()} for each in changes]
                for group, changes in self.changes()
            },
            "warnings": self.warnings(),
        }


def _short_names(paths: Sequence[Sequence[str]]) -> list[str]:
    """The shortest distinct ends of the paths; duplicates get a number."""
    for n in range(1, max(map(len, paths)) + 1):
        names = ["/".join(parts[-n:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{'/'.join(parts[-1:])} ({number})" for number, parts in enumerate(paths, start=1)]


def write_comparison(comparison: Comparison, out: Path) -> None:
    """Write the page."""
    write_text(out, ComparisonPage(comparison).html())


def write_pages(runs: Mapping[str, RunFolder], out: Path) -> list[Path]:
    """Write the comparison of named runs to `out`, and a report into each run; returns all paths."""
    write_comparison(Comparison(tuple(starmap(ComparedRun, runs.items()))), out)
    return [out, *map(write_report, runs.values())]


@dataclass(frozen=True)
class ComparisonPage:
    """Reads the values of each part of the page."""

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
        """The best and worst change on New images, and the run with the highest All."""
        runs = self.comparison.runs
        changes = [(group, each) for group, parts in self.comparison.changes() for each in parts if each.group == "new"]
        scored = [(run.name, run.scores) for run in runs if run.scores is not None]
        best = max(scored, key=lambda run: run[1].all, default=None)
        expected = [(Name(run.name), str(run.run.expected)) for run in runs if run.run.expected is not None]
        by_share = sorted(self.comparison.agreement.pairs, key=lambda pair: pair.share)
        return {
            "expected": expected[:MOST_EXPECTED],
            "n_more_expected": max(0, len(expected) - MOST_EXPECTED),
            "simple": next(filter(None, (simple_texts(run.run) for run in runs)), {}),
            "n_better": sum(each.low > 0 for _, each in changes),
            "n_worse": sum(each.high < 0 for _, each in changes),
            "n_settings": len(changes),
            "ends": [
                (Name(group.name), str(each), each.verdict())
                for group, each in first_and_last(sorted(changes, key=lambda change: -change[1].points))
            ],
            "best": best and (Name(best[0]), percent(best[1], "all")),
            "baseline": self.comparison.baseline_title,
            "figure": draw_scores(self.comparison) if scored else None,
            "pairs": [(*map(Name, pair.names), str(pair)) for pair in first_and_last(by_share)],
        }

    def settings(self) -> Values:
        differing = self.comparison.differing()
        rows = [(name, *("" if value is None else str(value) for value in each)) for name, each in differing.items()]
        shared = [(name, str(value)) for name, value in self.comparison.shared().items()]
        columns = ["setting", *(run.name for run in self.comparison.runs)]
        return {"differing": Table(columns, rows), "shared": Table(("setting", "value"), shared)}

    def scores(self) -> Values | None:
        rows = [
            (
                Name(run.name),
                "" if run.run.expected is None else str(run.run.expected),
                *(percent(run.scores, group) for group in GROUPS),
                run.scores.nmi,
                run.scores.ari,
            )
            for run in self.comparison.runs
            if run.scores is not None
        ]
        columns = ("run", "expected right", "All %", "Old %", "New %", "NMI", "ARI")
        return {"accuracies": Table(columns, rows)} if rows else None

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
        rows = [
            (Name(group.name), group.selector, each.group.capitalize(), str(each),
             f"{each.n_seeds} / {each.n_baseline_seeds}", each.verdict())
            for group, parts in changes
            for each in parts
        ]  # fmt: skip
        if not rows:
            return None
        return {
            "changes": Table(("runs", "selector", "images of", "change", "seeds / baseline seeds", "verdict"), rows),
            "baseline": self.comparison.baseline_title,
            "level": LEVEL,
        }

    def errors(self) -> Values | None:
        pairs = {plain(run.name): judged(run.run) for run in self.comparison.runs[:MOST_DRAWN]}
        judged_runs = {name: pair for name, pair in pairs.items() if not isinstance(pair, Missing)}
        errors_of = {name: break_down(pair.y_true, pair.y_pred, pair.is_old) for name, pair in judged_runs.items()}
        if not errors_of:
            return None
        counts = {name: errors.by_kind() | errors.by_cause() for name, errors in errors_of.items()}
        columns = ("run", *(kind.replace("_", " ") for kind in next(iter(counts.values()))))
        kinds = Table(columns, [(Name(name), *each.values()) for name, each in counts.items()])
        return {"figure": draw_errors(errors_of), "kinds": kinds}

    def selection(self) -> Values | None:
        weights: dict[str, dict[str, float]] = {}
        rows: list[tuple[object, ...]] = []
        for run in self.comparison.runs:
            saved = attempt(lambda run=run: run.run.selection, "no selection")  # type: ignore[misc]
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
        return {"selections": selections, "n_selected": len(weights), "weights": _disagreement(weights)}

    def count(self) -> Values:
        rows = []
        for run in self.comparison.runs:
            about = run.run.about
            count = optional(lambda run=run: run.run.count) or {}  # type: ignore[misc]
            estimates = "; ".join(_estimate(name, each) for name, each in count.get("estimates", {}).items())
            k = about.get("n_target", about.get("n_categories"))
            rows.append((Name(run.name), k, str(about.get("k_source", "unknown")), estimates or "not estimated"))
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


def first_and_last(values: Sequence[T]) -> list[T]:
    """The first and the last value; a single one if there is no other."""
    return [*values[:1], *values[1:][-1:]]


def _estimate(name: str, estimate: Mapping[str, Any]) -> str:
    interval = estimate.get("interval")
    return f"{name}: {estimate.get('n_categories')}" + (f" ({interval[0]} to {interval[1]})" if interval else "")


def _disagreement(weights: Mapping[str, Mapping[str, float]]) -> Table:
    """The classes whose weights differ most; empty if the runs agree."""
    names = [name for name in next(iter(weights.values()), {}) if all(name in each for each in weights.values())]
    values = np.array([[each[name] for each in weights.values()] for name in names]).reshape(len(names), len(weights))
    spread = np.ptp(values, axis=1) if values.size else np.zeros(0)
    order = np.argsort(-spread, kind="stable").tolist() if spread.any() else []
    return Table(("class", *weights), [(Name(names[row]), *values[row].tolist()) for row in order])


def draw_scores(comparison: Comparison) -> Figure:
    """One row per run, one panel each for All, Old and New; the baseline in another color."""
    runs = [(run, run.scores) for run in comparison.runs if run.scores is not None][:MOST_RUNS]
    figure, panels = figure_with_axes(8.4, 0.9 + 0.32 * len(runs), (1, len(GROUPS)), sharey=True)
    for axes, group in zip(panels, GROUPS, strict=True):
        axes.grid(axis="x", color=LINE, linewidth=0.5, alpha=0.6)
        for place, (run, scores) in enumerate(runs):
            value = 100 * getattr(scores, group)
            if math.isnan(value):
                continue
            color = COLORS[1] if run.settings.get("selector") == comparison.baseline else COLORS[0]
            if group in scores.intervals:
                low, high = scores.intervals[group]
                axes.plot([100 * low, 100 * high], [place, place], color=color, linewidth=1.6)
            axes.plot([value], [place], "o", color=color, markersize=5)
        axes.set_title(group.capitalize(), loc="left", fontsize=10, color=INK)
        axes.set_xlabel("accuracy %", fontsize=8.5)
        axes.margins(y=0.2)
    label_rows(panels[0], range(len(runs)), [short(run.name, 28) for run, _ in runs])
    return figure
