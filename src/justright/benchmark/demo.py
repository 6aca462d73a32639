"""The main job on the embedded data: every selector with SimGCD, and how many categories there are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from justright.benchmark.glyph_problem import glyph_problem
from justright.benchmark.parts import to_count
from justright.benchmark.problem import Problem
from justright.benchmark.run import Run
from justright.benchmark.run_folder import RunFolder
from justright.benchmark.spec import RunSpec
from justright.estimation import COUNTERS
from justright.progress import Track, silent

BACKBONE = "glyph_vit"
SELECTORS = ("none", "cui", "bins", "beta")
N_EPOCHS = 10
"""Of a demo that must end within minutes; accuracy still rises after it."""


@dataclass(frozen=True)
class DemoResult:
    """The runs by selector, K by counter, and how long each stage took over all runs."""

    problem: Problem
    runs: dict[str, RunFolder]
    counts: dict[str, int]
    seconds: dict[str, float]


def demo_spec(selector: str, seed: int, n_target: int | None, method: str = "simgcd", **settings: Any) -> RunSpec:
    """What a run of the demo is set to: the true K, as in the paper's tables, and light heads."""
    if method != "kmeans":
        settings = {"n_epochs": N_EPOCHS} | settings
    return RunSpec(
        selector=selector,
        method=method,
        scale="small",
        settings=settings,
        backbone=BACKBONE,
        n_target=n_target,
        seed=seed,
    )


def run_demo(out: Path, seed: int = 0, track: Track = silent) -> DemoResult:
    """Run every stage and leave its files in `out`; what is there already is not computed again."""
    from justright.features.backbone import load_backbone

    seconds: dict[str, float] = {}
    with _timed(seconds, "draw"):
        problem = glyph_problem(seed=seed)
        backbone = load_backbone(BACKBONE)
    runs = {}
    for selector in SELECTORS:
        spec = demo_spec(selector, seed, problem.n_target_classes)
        asked = {"target": "drawn Armenian and Georgian characters", "pool": "drawn characters of many scripts"}
        run = Run(problem, spec, out / selector, backbone, asked | {"command": "justright demo"}, track)
        runs[selector] = run.all()
        for stage, spent in run.seconds.items():
            seconds[stage] = seconds.get(stage, 0.0) + spent
    with _timed(seconds, "count"):
        counts = _count(problem, runs["none"], seed, track)
    return DemoResult(problem, runs, counts, seconds)


def _count(problem: Problem, run: RunFolder, seed: int, track: Track) -> dict[str, int]:
    """K by every counter."""
    assert run.frozen is not None, "a finished run has features"
    pool, target = run.frozen
    given = to_count(pool, target, problem.own_classes)
    return {name: given.by(name, seed, track).n_categories_ for name in COUNTERS}


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - started
