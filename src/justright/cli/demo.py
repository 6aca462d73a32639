"""`justright demo`: everything on drawn images, offline."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from justright.cli.common import OUT_FOLDER, device_option, own_folder, seed_option
from justright.cli.terminal import Terminal, with_terminal
from justright.data.pool import dataset_title
from justright.evaluation.scores import GROUPS
from justright.runs.request import resolve_device
from justright.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from justright.benchmark.demo import DemoResult
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
    a guide, with what each selector takes from it, and with the classes of the pool as rivals, all equally long. True
    labels, which no run has seen, judge the results. Call it again to continue after a stop.

    --full runs every method with all of these settings and three seeds, and SimGCD with one labeled set at a time:
    similar, medium, dissimilar, out of domain.

    \b
    Examples:
      justright demo
      justright demo --out somewhere --seed 1 --json
      justright demo --full --out full
    """
    own_folder(out)
    from justright.features.feature_network import usable

    device = usable(resolve_device(device, _begun_on(out)))
    if full:
        _run_full(terminal, out, seed, device)
        return
    from justright.benchmark.demo import run_demo
    from justright.report.comparison import Comparison, write_comparison
    from justright.report.run_report import write_report

    terminal.say("Drawing characters and finding new ones among them, on this machine alone.")
    result = run_demo(out, seed, device)
    comparison = Comparison.of(list(result.runs.values()))
    write_comparison(comparison, out / "comparison.html")
    reports = [write_report(run) for run in result.runs.values()]
    _show(terminal, result, comparison, [out / "comparison.html", *reports])


def _begun_on(out: Path) -> str:
    """The device of the runs that lie there already, all of one; nothing if there are none."""
    begun = next(out.rglob("run.json"), None)
    return "" if begun is None else str(RunFolder(begun.parent).about["spec"].get("device", ""))


def _show(terminal: Terminal, result: DemoResult, comparison: Comparison, pages: list[Path]) -> None:
    problem, runs = result.problem, result.runs
    sources = Counter(origin.dataset for origin in problem.pool.origins)
    kept = {name: kept_classes(run) for name, run in runs.items()}
    terminal.table(
        f"Classes that each setting learns from, by source ({len(problem.pool.images):,} labeled images)",
        ("source", "classes", *kept),
        [(dataset_title(source), n, *(counts[source] for counts in kept.values())) for source, n in sources.items()],
    )
    changes = {group.name: {each.group: each for each in parts} for group, parts in comparison.changes()}
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
    value = {
        "scores": scores,
        "categories": {"true": problem.n_target_classes, **result.counts},
        "kept": {name: dict(counts) for name, counts in kept.items()},
        "seconds": result.seconds,
        "verdict": verdict(comparison),
        "pages": [str(page) for page in pages],
    }
    counted = ", ".join(f"{k} by {name}" for name, k in result.counts.items())
    stages = ", ".join(f"{stage} {spent:.1f}" for stage, spent in result.seconds.items())
    lines = [
        f"Number of categories: {problem.n_target_classes} in truth, which the runs were told; {counted}",
        verdict(comparison),
        f"{sum(result.seconds.values()):.0f} seconds: {stages}",
        f"Look at:  {pages[0]}, and report.html in each folder beside it",
        f"Correct:  justright review {runs['everything'].path}",
    ]
    terminal.result(value, "\n".join(lines))


def kept_classes(run: RunFolder) -> Counter[str]:
    """How many classes of each source have a weight."""
    assert run.selection is not None, "a finished run has weights"
    rows = run.selection.classes.select(["dataset", "weight"]).to_pylist()
    return Counter(row["dataset"] for row in rows if row["weight"] > 0)


def verdict(comparison: Comparison) -> str:
    """What the pool did, said plainly: as a guide, as a rival, and whether a selection from it helped."""
    every = {group.name: each for group, parts in comparison.changes() for each in parts if each.group == "all"}
    lines = []
    guides = {name: each for name, each in every.items() if not name.endswith("rivals")}
    if guides:
        best = max(guides, key=lambda name: guides[name].points)
        lines.append(f"As a guide, the pool changes All most with {best}: {_in_words(guides[best])}.")
    if "everything" in guides:
        lines.append(f"The whole pool as a guide: {_in_words(guides['everything'])}.")
    for name in every.keys() - guides.keys():
        lines.append(f"Its classes as rivals, which target images may be called: {_in_words(every[name])}.")
    lines.append("This is one problem and one seed. docs/findings.md has eleven problems, three seeds each.")
    return "\n".join(lines)


def _in_words(change: ScoreChange) -> str:
    return f"{change} points against own labels alone, {change.verdict()}"


def _run_full(terminal: Terminal, out: Path, seed: int, device: str) -> None:
    from justright.benchmark.demo import run_full_demo
    from justright.report.comparison import Comparison, write_comparison

    terminal.say("All methods, selectors and labeled sets, three seeds each. This takes long; stopped, it goes on.")
    result: dict[str, object] = {}
    for experiment, runs in run_full_demo(out, seed, device).items():
        comparison = Comparison.of(runs)
        page = out / f"{experiment.replace(', ', '-').replace(' ', '-')}.html"
        write_comparison(comparison, page)
        title = f"{experiment}: mean and spread over seeds"
        terminal.table(title, ("setting", "All", "Old", "New"), rows_over_seeds(runs))
        result[experiment] = comparison.to_json() | {"page": str(page)}
    terminal.result(result, f"Pages with intervals and curves are in {out}")


def rows_over_seeds(runs: list[RunFolder]) -> list[tuple[str, ...]]:
    """A row per setting or labeled set: its name, and mean and spread of All, Old and New over its seeds."""
    from justright.report.compared_runs import mean_and_spread

    by_name: dict[str, list[RunFolder]] = {}
    for run in runs:
        by_name.setdefault(run.path.name.rpartition("-")[0], []).append(run)
    return [
        (name, *(mean_and_spread([getattr(run.scores, group) for run in repeats]) for group in GROUPS))
        for name, repeats in by_name.items()
    ]
