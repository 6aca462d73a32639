"""`justright demo`: the whole thing on drawn images, offline."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from justright.cli.voice import Voice, voiced

if TYPE_CHECKING:
    from justright.benchmark.demo import DemoResult


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("justright-demo"), show_default=True
)
@click.option("--seed", default=0, show_default=True, help="Of drawing, splits and clustering.")
@voiced
def demo(voice: Voice, out: Path, seed: int) -> None:
    """Find new characters among drawn ones, guided by labeled characters of many scripts.

    Needs no data and no network. The target is two alphabets, half of whose characters are new; the pool is the rest of
    them and eight other scripts, near and far. Every selector chooses from the pool, and semi-supervised k-means on
    frozen features of the embedded backbone finds the categories. Training is not part of it yet.

    \b
    Examples:
      justright demo
      justright demo --out somewhere --seed 1 --json
    """
    from justright.benchmark.demo import run_demo

    voice.say("Drawing characters and finding new ones among them, on this machine alone.")
    _show(run_demo(out, seed, voice.track), voice, out)


def _show(result: DemoResult, voice: Voice, out: Path) -> None:
    problem = result.problem
    sources = Counter(origin.dataset for origin in problem.pool.origins)
    kept = {
        name: Counter(problem.pool.origins[label].dataset for label in selector.selected_classes_)
        for name, selector in result.selectors.items()
    }
    voice.table(
        f"Classes of the pool that each selector keeps, by source ({len(problem.pool.images):,} images)",
        ("source", "classes", *kept),
        [(source, n, *(counts[source] for counts in kept.values())) for source, n in sources.items()],
    )
    none = result.scores["none"]
    voice.table(
        f"Accuracy on {none.n_images:,} target images of {none.n_classes} categories, in percent",
        ("selection", "All", "Old", "New", "New against none"),
        [
            (name, *(f"{100 * x:.1f}" for x in (s.all, s.old, s.new)), f"{100 * (s.new - none.new):+.1f}")
            for name, s in result.scores.items()
        ],
    )
    counted = {name: counter.n_categories_ for name, counter in result.counts.items()}
    best = max(result.scores, key=lambda name: result.scores[name].new)
    # two independent intervals: wider than a paired one, so a gain is claimed too late rather than too early
    noise = math.hypot(*((high - low) / 2 for low, high in (s.intervals["new"] for s in (none, result.scores[best]))))
    voice.result(
        {
            "scores": {name: scores.to_dict() for name, scores in result.scores.items()},
            "categories": {"true": problem.n_target_classes, **counted},
            "kept": {name: dict(counts) for name, counts in kept.items()},
            "seconds": result.seconds,
            "folder": str(out),
        },
        "\n".join(
            [
                f"Number of categories: {problem.n_target_classes} in truth, "
                + ", ".join(f"{k} by {name}" for name, k in counted.items()),
                verdict(best, 100 * (result.scores[best].new - none.new), 100 * noise),
                "Seconds: " + ", ".join(f"{stage} {spent:.1f}" for stage, spent in result.seconds.items()),
                f"Features, weights and scores are in {out}",
            ]
        ),
    )


def verdict(best: str, gain: float, noise: float) -> str:
    """Whether selection helped, said plainly."""
    frozen = "Nothing was trained: this is k-means on frozen features, one seed."
    if best == "none" or gain <= 0:
        return f"Selection did not help here. {frozen}"
    if gain <= noise:
        return f"{best} is ahead by {gain:.1f} points on New, within the noise of {noise:.1f}. {frozen}"
    return f"{best} gains {gain:.1f} points on New. {frozen}"
