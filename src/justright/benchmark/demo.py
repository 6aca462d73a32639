"""The demo: drawn alphabets, pools from much like them to dots, and the runs of its short and long form (Tab. 1)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from justright.data import gcd_split, glyph_set, merge_pool, random_half
from justright.discovery.methods import METHODS, is_trained
from justright.estimation import COUNTERS
from justright.runs.counting import fitted_counter
from justright.runs.problem import OWN, Problem
from justright.runs.run import Run
from justright.runs.run_folder import RunFolder
from justright.runs.spec import RunSpec
from justright.selection import selectors_by_target

TARGET_SCRIPTS = ("armenian", "georgian")  # the embedded backbone has seen neither
# from alphabets much like the target to what has nothing to do with it
POOL_SCRIPTS = ("greek", "cyrillic", "phonetic", "arabic", "canadian-syllabics", "operators", "box-drawing", "braille")
LABELED_SETS = {  # chosen by kind, not by result: other alphabets, letters of another make, symbols, dots and lines
    "similar": ("greek", "cyrillic"),
    "medium": ("arabic", "canadian-syllabics"),
    "dissimilar": ("operators", "arrows"),
    "out of domain": ("braille", "box-drawing"),
}
CLASSES_A_SET = 40  # sets of one size, so that only their kind differs
BACKBONE = "glyph_vit"
SETTINGS: dict[str, dict[str, Any]] = {  # how the pool takes part: not at all, whole or in part, as guide or rival
    "own": {"selector": "own"},
    "everything": {"selector": "none"},
    **{name: {"selector": name} for name in selectors_by_target()},
    "everything-as-rivals": {"selector": "none", "pool_role": "rival"},
}
# Of the short form, which must end within minutes; accuracy still rises after it. Equal steps for all settings.
N_EPOCHS, N_STEPS = 16, 18
FULL_EPOCHS, FULL_SEEDS = 30, (0, 1, 2)  # of the long form


def glyph_problem(per_class: int = 30, pool_per_class: int = 10, seed: int = 0) -> Problem:
    """Half of the target's characters are old, half of their images labeled; other scripts join the pool."""
    target = glyph_set(per_class, TARGET_SCRIPTS, seed, dataset=OWN)
    split, truth = gcd_split(target, random_half(target.classes, seed), seed=seed)
    others = [glyph_set(pool_per_class, [script], seed, dataset=script) for script in POOL_SCRIPTS]
    return Problem(merge_pool([split.labeled, *others]), split.unlabeled, truth, len(target.classes))


def with_labeled_set(problem: Problem, scripts: tuple[str, ...], seed: int = 0) -> Problem:
    """The same target, all of whose categories are now new, with one labeled set of a given kind."""
    images = glyph_set(15, scripts, seed)
    chosen = images.of_classes(sorted(images.classes)[:: max(1, len(images.classes) // CLASSES_A_SET)][:CLASSES_A_SET])
    assert problem.truth is not None, "the embedded problem has a truth"
    return replace(problem, pool=merge_pool([chosen]), truth=problem.truth.with_old(()))


@dataclass(frozen=True)
class DemoResult:
    """The runs by setting, K by counter, and how long each stage took over all runs."""

    problem: Problem
    runs: dict[str, RunFolder]
    counts: dict[str, int]
    seconds: dict[str, float]


def demo_spec(setting: str, seed: int, n_target: int | None, n_epochs: int, method: str = "simgcd") -> RunSpec:
    """What a run of the demo is set to: the true K, as in the paper's tables, and light heads."""
    settings = {"n_epochs": n_epochs, "n_steps": N_STEPS} if is_trained(method) else {}
    asked = SETTINGS[setting] | {"method": method, "settings": settings, "n_target": n_target, "seed": seed}
    return RunSpec(scale="small", backbone=BACKBONE, **asked)


def run_demo(out: Path, seed: int = 0, device: str = "cpu") -> DemoResult:
    """Run every setting of the short form; what `out` holds already is not computed again."""
    from justright.features.backbone import load_backbone

    started = time.perf_counter()
    problem, backbone = glyph_problem(seed=seed), load_backbone(BACKBONE, device=device)
    seconds = defaultdict(float, draw=time.perf_counter() - started)
    asked = {"target": "drawn Armenian and Georgian characters", "pool": "drawn characters of many scripts"}
    runs = {}
    for setting in SETTINGS:
        spec = demo_spec(setting, seed, problem.n_target_classes, N_EPOCHS)
        spec = replace(spec, device=device, answer="joint")
        run = Run(problem, spec, out / setting, backbone, asked | {"command": "justright demo"})
        runs[setting] = run.all()
        for stage, spent in run.seconds.items():
            seconds[stage] += spent
    started = time.perf_counter()
    features = runs["own"].frozen
    assert features is not None, "a finished run has features"
    given = *features, problem.own_classes, seed
    counts = {name: fitted_counter(name, *given).n_categories_ for name in COUNTERS}
    seconds["count"] += time.perf_counter() - started
    return DemoResult(problem, runs, counts, dict(seconds))


def run_full_demo(out: Path, seed: int = 0, device: str = "cpu") -> dict[str, list[RunFolder]]:
    """Every run of the long form, by the name of the experiment; what `out` holds already is not computed again."""
    from justright.features.backbone import load_backbone

    backbone, asked = load_backbone(BACKBONE, device=device), {"command": "justright demo --full"}
    found: dict[str, list[RunFolder]] = {}
    for experiment, problem, spec, path in _full_runs(seed):
        run = Run(problem, replace(spec, device=device), out / path, backbone, asked)
        found.setdefault(experiment, []).append(run.all())
    return found


def _full_runs(seed: int) -> Iterator[tuple[str, Problem, RunSpec, Path]]:
    """As the paper's tables have it, so categories are the method's own."""
    problem = glyph_problem(seed=seed)
    length = problem.n_target_classes, FULL_EPOCHS
    for method in METHODS:
        for setting in SETTINGS:
            for repeat in FULL_SEEDS:
                spec = demo_spec(setting, repeat, *length, method)
                yield f"methods, {method}", problem, spec, Path("methods") / method / f"{setting}-{repeat}"
    for name, scripts in LABELED_SETS.items():
        other = with_labeled_set(problem, scripts, seed)
        for repeat in FULL_SEEDS:
            spec = demo_spec("everything", repeat, *length)
            yield "labeled sets", other, spec, Path("labeled sets") / f"{name}-{repeat}"
