"""The long form of the demo: all methods, three seeds, and which labeled set helps (Tab. 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from justright.data import glyph_set, merge_pool
from justright.demo.glyph_problem import glyph_problem
from justright.demo.short_demo import BACKBONE, SETTINGS, demo_spec
from justright.progress import Track, silent
from justright.runs.problem import Problem
from justright.runs.run import Run
from justright.runs.run_folder import RunFolder
from justright.runs.spec import RunSpec

SEEDS = (0, 1, 2)
METHODS = ("kmeans", "gcd", "xcon", "simgcd", "mugcd")
N_EPOCHS = 30

LABELED_SETS = {
    "similar": ("greek", "cyrillic"),
    "medium": ("arabic", "canadian-syllabics"),
    "dissimilar": ("operators", "arrows"),
    "out of domain": ("braille", "box-drawing"),
}
"""From other alphabets, over letters of another make and symbols, to dots and lines. Chosen by kind, not by result."""

CLASSES_A_SET = 40
"""Sets of one size, so that only their kind differs."""


def run_full(out: Path, seed: int = 0, track: Track = silent) -> dict[str, list[RunFolder]]:
    """Every run of the long form, by the name of the experiment. Stopped, it goes on where it was."""
    from justright.features.backbone import load_backbone

    backbone = load_backbone(BACKBONE)
    found: dict[str, list[RunFolder]] = {}
    for experiment, problem, spec, path in _runs(seed):
        run = Run(problem, spec, out / path, backbone, {"command": "justright demo --full"}, track).all()
        found.setdefault(experiment, []).append(run)
    return found


def _runs(seed: int) -> Iterator[tuple[str, Problem, RunSpec, Path]]:
    problem = glyph_problem(seed=seed)
    for method in METHODS:
        epochs = {} if method == "kmeans" else {"n_epochs": N_EPOCHS}
        for setting in SETTINGS:
            for repeat in SEEDS:
                spec = demo_spec(setting, repeat, problem.n_target_classes, method, **epochs)
                yield f"methods, {method}", problem, spec, Path("methods") / method / f"{setting}-{repeat}"
    for name, scripts in LABELED_SETS.items():
        other = with_labeled_set(problem, scripts, seed)
        for repeat in SEEDS:
            spec = demo_spec("everything", repeat, problem.n_target_classes, n_epochs=N_EPOCHS)
            yield "labeled sets", other, spec, Path("labeled sets") / f"{name}-{repeat}"


def with_labeled_set(problem: Problem, scripts: tuple[str, ...], seed: int = 0) -> Problem:
    """The same target, all of whose categories are now new, with one labeled set of a given kind."""
    images = glyph_set(15, scripts, seed)
    chosen = images.of_classes(sorted(images.classes)[:: max(1, len(images.classes) // CLASSES_A_SET)][:CLASSES_A_SET])
    assert problem.truth is not None, "the embedded problem has a truth"
    return replace(problem, pool=merge_pool([chosen]), truth=problem.truth.with_old(()))
