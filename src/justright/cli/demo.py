"""`justright demo`: everything on drawn images, offline."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from justright.benchmark.problems import problem_of
from justright.benchmark.runner import run_path, run_suite
from justright.benchmark.suite import Suite, read_suite
from justright.cli.common import OUT_FOLDER, device_option, seed_option
from justright.cli.suite_view import show_suite
from justright.cli.terminal import Terminal, with_terminal
from justright.data.pool import dataset_title
from justright.estimation import COUNTERS
from justright.evaluation.scores import GROUPS
from justright.runs.request import resolve_device
from justright.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from justright.report.compared_runs import ScoreChange
    from justright.report.comparison import Comparison


@click.command()
@click.option("--out", type=OUT_FOLDER, default=Path("justright-demo"), help="Folder for the runs and pages.")
@click.option("--full", is_flag=True, help="Run all methods with three seeds, and four labeled sets. About an hour.")
@seed_option
@device_option
@with_terminal
def demo(terminal: Terminal, out: Path, full: bool, seed: int, device: str) -> None:
    """Find new characters among drawn ones, offline.

    The target is two alphabets; half of their characters are new, and half of the images of the others are labeled. The
    pool is eight other scripts, near and far. SimGCD learns with the target's own labels alone, with the whole pool as
    a guide, with what each selector takes from it, and with the classes of the pool as rivals, all equally long. The
    true labels, which no run sees, are used to compute the accuracy. Call it again to resume after a stop.

    --full runs every method with all of these settings and three seeds, and SimGCD with one labeled set at a time:
    similar, medium, dissimilar, out of domain. These are the suites demo and demo-full of `justright benchmark`.

    \b
    Examples:
      justright demo
      justright demo --out somewhere --seed 1 --json
      justright demo --full --out full
    """
    from justright.features.feature_network import usable

    device = usable(resolve_device(device, _previous_device(out)))
    suite = demo_suite(full, seed)
    terminal.say("All methods, three seeds each, about an hour." if full else "Finding new characters, offline.")
    lines = run_suite(suite.with_run(device=device), out)
    if full:
        show_suite(terminal, suite, lines, out, None)
    else:
        _show(terminal, suite, out)


def demo_suite(full: bool, seed: int) -> Suite:
    """The suite of the demo, with everything drawn by this seed; the short one also trains with it."""
    suite = read_suite("demo-full" if full else "demo")
    problems = [
        replace(
            problem,
            target=f"{problem.target},seed={seed}",
            pool={name: f"{source},seed={seed}" for name, source in problem.pool.items()},
            split_seed=seed,
        )
        for problem in suite.problems
    ]
    return replace(suite, problems=tuple(problems), seeds=suite.seeds if full else (seed,))


def _previous_device(out: Path) -> str:
    """The device of the runs in this folder, which is the same for all; empty if there are none."""
    about = next(out.rglob("run.json"), None)
    return "" if about is None else str(RunFolder(about.parent).about["spec"].get("device", ""))


def _show(terminal: Terminal, suite: Suite, out: Path) -> None:
    from justright.report.compared_runs import ComparedRun
    from justright.report.comparison import Comparison, write_comparison
    from justright.report.run_report import write_report
    from justright.runs.counting import fitted_counter

    (described,), (seed,) = suite.problems, suite.seeds
    problem = problem_of(described)
    runs = {each.name: RunFolder(run_path(out, described.name, each.name, seed)) for each in suite.settings}
    comparison = Comparison(tuple(ComparedRun(name, run) for name, run in runs.items()))
    write_comparison(comparison, out / "comparison.html")
    pages = [out / "comparison.html", *(write_report(run) for run in runs.values())]
    sources = Counter(origin.dataset for origin in problem.pool.origins)
    kept = {name: kept_classes(run) for name, run in runs.items()}
    terminal.table(
        f"Classes that each setting learns from, by source ({len(problem.pool.images):,} labeled images)",
        ("source", "classes", *kept),
        [(dataset_title(source), n, *(counts[source] for counts in kept.values())) for source, n in sources.items()],
    )
    changes = {group.name: {change.group: change for change in parts} for group, parts in comparison.changes()}
    rows, scores = [], {}
    for name, run in runs.items():
        assert run.scores is not None, "the demo has a truth"
        scores[name] = run.scores.to_dict()
        accuracy = [f"{100 * getattr(run.scores, group):.1f}" for group in GROUPS]
        against_own = [str(changes[name][group]) if name in changes else "" for group in GROUPS]
        rows.append((name, int((run.predictions.sizes > 0).sum()), *accuracy, *against_own))
    own = scores["own"]
    title = f"SimGCD on {own['n_images']:,} images of {own['n_classes']} categories, accuracy in percent, one seed"
    columns = ("labeled data", "clusters", "All", "Old", "New", "All against own", "Old", "New")
    terminal.table(title, columns, rows)
    seconds: dict[str, float] = {}
    for run in runs.values():
        for stage, spent in run.about["seconds"].items():
            seconds[stage] = seconds.get(stage, 0.0) + spent
    started = time.perf_counter()
    tables = runs["own"].frozen
    assert tables is not None, "a finished run has features"
    counts = {name: fitted_counter(name, *tables, problem.own_classes, seed).n_categories_ for name in COUNTERS}
    seconds["count"] = seconds.get("count", 0.0) + time.perf_counter() - started
    value = {
        "scores": scores,
        "categories": {"true": problem.n_target_classes, **counts},
        "kept": {name: dict(by_source) for name, by_source in kept.items()},
        "seconds": seconds,
        "verdict": verdict(comparison),
        "pages": [str(page) for page in pages],
    }
    estimates = ", ".join(f"{k} by {name}" for name, k in counts.items())
    stages = ", ".join(f"{stage} {spent:.1f}" for stage, spent in seconds.items())
    text = [
        f"Number of categories: {problem.n_target_classes}, given to the runs; estimates: {estimates}",
        verdict(comparison),
        f"{sum(seconds.values()):.0f} seconds: {stages}",
        f"Look at:  {pages[0]}, and report.html in each folder of {runs['own'].path.parent}",
        f"Correct:  justright review {runs['everything'].path}",
    ]
    terminal.result(value, "\n".join(text))


def kept_classes(run: RunFolder) -> Counter[str]:
    """The number of classes of each source that have a weight."""
    assert run.selection is not None, "a finished run has weights"
    rows = run.selection.classes.select(["dataset", "weight"]).to_pylist()
    return Counter(row["dataset"] for row in rows if row["weight"] > 0)


def verdict(comparison: Comparison) -> str:
    """The effect of the pool in sentences: as a guide, as a rival, and of a selection from it."""
    changes = {group.name: change for group, parts in comparison.changes() for change in parts if change.group == "all"}
    guides = {name: change for name, change in changes.items() if not name.endswith("rivals")}
    lines = []
    if guides:
        best = max(guides, key=lambda name: guides[name].points)
        lines.append(f"As a guide, the pool changes All most with {best}: {_in_words(guides[best])}.")
    if "everything" in guides:
        lines.append(f"The whole pool as a guide: {_in_words(guides['everything'])}.")
    for name in changes.keys() - guides.keys():
        lines.append(f"Its classes as rivals, to which target images may be assigned: {_in_words(changes[name])}.")
    lines.append("This is one problem and one seed. docs/findings.md has eleven problems, three seeds each.")
    return "\n".join(lines)


def _in_words(change: ScoreChange) -> str:
    return f"{change} points against own labels alone, {change.verdict()}"
