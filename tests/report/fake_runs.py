"""Runs in memory, to test comparisons."""

from __future__ import annotations

from pathlib import Path

from justright.evaluation import Scores
from justright.report.compared_runs import ComparedRun
from justright.runs.run_folder import RunFolder


def fake_run(
    name: str, run: RunFolder | None = None, accuracy: float | None = 0.6, half: float = 0.05, **about
) -> ComparedRun:
    """A run with the same accuracy on all sides, and an interval of this half-width."""
    if run is not None:
        return ComparedRun(name, run)
    folder = RunFolder(Path("no such folder") / name)
    text = {"method": "gcd", "selector": "beta", "seed": 0, "k_source": "given"} | about
    scores = None
    if accuracy is not None:
        intervals = dict.fromkeys(("all", "old", "new"), (accuracy - half, accuracy + half)) if half else {}
        scores = Scores(accuracy, accuracy, accuracy, 0.5, 0.5, "v2", 100, 50, 50, 10, 10, intervals=intervals)
    vars(folder).update(about=text, scores=scores, selection=None, count=None, curves={})
    return ComparedRun(name, folder)
