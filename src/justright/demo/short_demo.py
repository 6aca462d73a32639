"""The main job on the embedded data: what a pool does to SimGCD, by role and selector, and how many categories."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from justright.demo.glyph_problem import glyph_problem
from justright.estimation import COUNTERS
from justright.progress import Track, silent
from justright.runs.parts import counter_input, fitted_counter
from justright.runs.problem import Problem
from justright.runs.run import Run
from justright.runs.run_folder import RunFolder
from justright.runs.spec import RunSpec

BACKBONE = "glyph_vit"
SETTINGS: dict[str, dict[str, Any]] = {
    "own": {"selector": "own"},
    "everything": {"selector": "none"},
    "cui": {"selector": "cui"},
    "bins": {"selector": "bins"},
    "beta": {"selector": "beta"},
    "everything-as-rivals": {"selector": "none", "pool_role": "rival"},
}
"""How the pool takes part, by the name of the run: not at all, as a whole or in part, as a guide or as a rival."""

N_EPOCHS, N_STEPS = 16, 18
"""Of a demo that must end within minutes; accuracy still rises after it. Equal steps for all, whatever the pool."""


@dataclass(frozen=True)
class DemoResult:
    """The runs by setting, K by counter, and how long each stage took over all runs."""

    problem: Problem
    runs: dict[str, RunFolder]
    counts: dict[str, int]
    seconds: dict[str, float]


def demo_spec(setting: str, seed: int, n_target: int | None, method: str = "simgcd", **settings: Any) -> RunSpec:
    """What a run of the demo is set to: the true K, as in the paper's tables, and light heads."""
    if method != "kmeans":
        settings = {"n_epochs": N_EPOCHS, "n_steps": N_STEPS} | settings
    return RunSpec(
        method=method,
        scale="small",
        settings=settings,
        backbone=BACKBONE,
        n_target=n_target,
        seed=seed,
        **SETTINGS[setting],
    )


def run_demo(out: Path, seed: int = 0, track: Track = silent) -> DemoResult:
    """Run every stage and leave its files in `out`; what is there already is not computed again."""
    from justright.features.backbone import load_backbone

    seconds: dict[str, float] = {}
    with _timed(seconds, "draw"):
        problem = glyph_problem(seed=seed)
        backbone = load_backbone(BACKBONE)
    runs = {}
    for setting in SETTINGS:
        spec = demo_spec(setting, seed, problem.n_target_classes)
        asked = {"target": "drawn Armenian and Georgian characters", "pool": "drawn characters of many scripts"}
        run = Run(problem, spec, out / setting, backbone, asked | {"command": "justright demo"}, track)
        runs[setting] = run.all()
        for stage, spent in run.seconds.items():
            seconds[stage] = seconds.get(stage, 0.0) + spent
    with _timed(seconds, "count"):
        counts = _count(problem, runs["own"], seed, track)
    return DemoResult(problem, runs, counts, seconds)


def _count(problem: Problem, run: RunFolder, seed: int, track: Track) -> dict[str, int]:
    """K by every counter."""
    assert run.frozen is not None, "a finished run has features"
    pool, target = run.frozen
    given = counter_input(pool, target, problem.own_classes)
    return {name: fitted_counter(name, given, seed, track).n_categories_ for name in COUNTERS}


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - started
