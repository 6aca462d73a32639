"""`justright demo`: the whole thing on drawn images, offline."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from justright.cli.terminal import Terminal, with_terminal

if TYPE_CHECKING:
    from justright.demo.short_demo import DemoResult
    from justright.report.comparison import Comparison
    from justright.report.seed_groups import ScoreChange
    from justright.runs.run_folder import RunFolder


GROUPS = ("all", "old", "new")


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("justright-demo"), show_default=True
)
@click.option("--full", is_flag=True, help="All methods, three seeds, and which labeled set helps. About an hour.")
@click.option("--seed", default=0, show_default=True, help="Of drawing, splits and training.")
@with_terminal
def demo(terminal: Terminal, out: Path, full: bool, seed: int) -> None:
    """Find new characters among drawn ones, guided by labeled characters of many scripts.

    Needs no data and no network. The target is two alphabets, half of whose characters are new; half of the images of
    the others are labeled. The pool is eight other scripts, near and far. SimGCD learns on the embedded backbone from
    the target's own labels alone, with the whole pool as a guide, with what each selector chooses from it, and with the
    pool's classes as rivals for the target's images. The truth, which none has seen, judges. All train equally long.
    Stopped, it goes on where it was.

    --full runs k-means, GCD, XCon, SimGCD and muGCD with every setting and three seeds, and SimGCD with one labeled set
    at a time: similar, medium, dissimilar, out of domain.

    \b
    Examples:
      justright demo
      justright demo --out somewhere --seed 1 --json
      justright demo --full --out full
    """
    if full:
        _full(terminal, out, seed)
        return
    from justright.demo.short_demo import run_demo
    from justright.report.comparison import Comparison
    from justright.report.comparison_page import write_comparison
    from justright.report.run_report import write_report

    terminal.say("Drawing characters and finding new ones among them, on this machine alone.")
    result = run_demo(out, seed, terminal.track)
    comparison = Comparison.of(list(result.runs.values()))
    write_comparison(comparison, out / "comparison.html")
    reports = [write_report(run, track=terminal.track) for run in result.runs.values()]
    _show(terminal, result, comparison, [out / "comparison.html", *reports])


def _show(terminal: Terminal, result: DemoResult, comparison: Comparison, pages: list[Path]) -> None:
    problem, runs = result.problem, result.runs
    sources = Counter(origin.dataset for origin in problem.pool.origins)
    kept = {name: kept_classes(run) for name, run in runs.items()}
    terminal.table(
        f"Classes that each setting learns from, by source ({len(problem.pool.images):,} labeled images)",
        ("source", "classes", *kept),
        [(source, n, *(counts[source] for counts in kept.values())) for source, n in sources.items()],
    )
    found = {name: run.scores for name, run in runs.items()}
    changes = {group.name: {each.group: each for each in parts} for group, parts in comparison.changes()}
    own = found["own"]
    assert own is not None, "the demo has a truth"
    terminal.table(
        f"SimGCD on {own.n_images:,} images of {own.n_classes} categories, accuracy in percent, one seed",
        ("labeled data", "clusters", "All", "Old", "New", "All against own", "Old", "New"),
        [
            (
                name,
                int((runs[name].predictions.sizes > 0).sum()),
                *(f"{100 * getattr(scores, group):.1f}" for group in GROUPS),
                *(str(changes[name][group]) if name in changes else "" for group in GROUPS),
            )
            for name, scores in found.items()
        ],
    )
    counted = ", ".join(f"{k} by {name}" for name, k in result.counts.items())
    total = sum(result.seconds.values())
    terminal.result(
        {
            "scores": {name: scores and scores.to_dict() for name, scores in found.items()},
            "categories": {"true": problem.n_target_classes, **result.counts},
            "kept": {name: dict(counts) for name, counts in kept.items()},
            "seconds": result.seconds,
            "verdict": verdict(comparison),
            "pages": [str(page) for page in pages],
        },
        "\n".join(
            [
                f"Number of categories: {problem.n_target_classes} in truth, which the runs were told; {counted}",
                verdict(comparison),
                f"{total:.0f} seconds: " + ", ".join(f"{stage} {spent:.1f}" for stage, spent in result.seconds.items()),
                f"Look at:  {pages[0]}, and report.html in each folder beside it",
                f"Correct:  justright review {runs['everything'].path}",
            ]
        ),
    )


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
        lines.append(f"As a guide, the pool changes All most with {best}: {_said(guides[best])}.")
    if "everything" in guides:
        lines.append(f"The whole pool as a guide: {_said(guides['everything'])}.")
    for name in every.keys() - guides.keys():
        lines.append(f"Its classes as rivals, which target images may be called: {_said(every[name])}.")
    lines.append("This is one problem and one seed. docs/findings.md has ten problems, three seeds each.")
    return "\n".join(lines)


def _said(change: ScoreChange) -> str:
    return f"{change} points against own labels alone, {change.verdict()}"


def _full(terminal: Terminal, out: Path, seed: int) -> None:
    from justright.demo.full_demo import run_full
    from justright.report.comparison import Comparison
    from justright.report.comparison_page import write_comparison

    terminal.say("All methods, selectors and labeled sets, three seeds each. This takes long; stopped, it goes on.")
    result: dict[str, object] = {}
    for experiment, runs in run_full(out, seed, terminal.track).items():
        comparison = Comparison.of(runs)
        page = out / f"{experiment.replace(', ', '-').replace(' ', '-')}.html"
        write_comparison(comparison, page)
        groups = comparison.groups()
        if experiment == "labeled sets":  # they differ in data, not in settings
            rows = labeled_set_rows(runs)
        else:
            rows = [
                (group.runs[0].settings["selector"], *(spread_text(group.values(name)) for name in GROUPS))
                for group in groups
            ]
        terminal.table(f"{experiment}: mean and spread over seeds", ("setting", "All", "Old", "New"), rows)
        result[experiment] = comparison.to_json() | {"page": str(page)}
    terminal.result(result, f"Pages with intervals and curves are in {out}")


def spread_text(values: list[float]) -> str:
    """Mean and standard deviation, in percent."""
    import numpy as np

    if not values:
        return "-"
    spread = f" ± {100 * np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.1f}{spread}"


def labeled_set_rows(runs: list[RunFolder]) -> list[tuple[str, str, str, str]]:
    """One row a labeled set; every category of the target is new to it."""
    sets: dict[str, list[float]] = {}
    for run in runs:
        assert run.scores is not None, "the demo has a truth"
        sets.setdefault(run.path.name.rpartition("-")[0], []).append(run.scores.new)
    return [(name, spread_text(values), "-", spread_text(values)) for name, values in sets.items()]
