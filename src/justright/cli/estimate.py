"""`justright estimate`: how many categories are there?"""

from __future__ import annotations

from pathlib import Path

import click

from justright.cli.voice import Voice, voiced
from justright.features.table import FeatureTable
from justright.files import write_json, write_text

STORE = click.Path(path_type=Path, exists=True, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("labeled", type=STORE)
@click.option("--target", type=STORE, required=True, help="Features of the unlabeled images.")
@click.option("--counter", type=click.Choice(["both", "labeled-search", "mixture"]), default="both", show_default=True)
@click.option("--max-k", type=click.IntRange(1), help="The largest K that labeled-search looks at.")
@click.option("--interval/--no-interval", default=True, show_default=True, help="Resample for an interval.")
@click.option("--figure", type=FILE, help="Where the curve goes, as SVG.")
@click.option("--out", type=FILE, help="Where the estimates go, as JSON.")
@click.option("--seed", default=0, show_default=True)
@voiced
def estimate(
    voice: Voice,
    labeled: Path,
    target: Path,
    counter: str,
    max_k: int | None,
    interval: bool,
    figure: Path | None,
    out: Path | None,
    seed: int,
) -> None:
    """Estimate the number of categories among LABELED and target images, in two ways.

    labeled-search takes the K at which k-means agrees best with the labels (GCD). mixture splits and merges Gaussians
    (GPC). Both read features that `justright extract` wrote; labels of the target are not looked at. LABELED should be
    of the target's own kind: classes of a foreign pool say little about how wide those of the target are.

    \b
    Examples:
      justright estimate labeled.features --target photos.features
      justright estimate labeled.features --target photos.features --figure k.svg --json
      justright estimate labeled.features --target photos.features --counter mixture --no-interval
    """
    from justright.estimation import CategoryCounter, LabeledSearchCounter, MixtureCounter
    from justright.features.pairs import labeled_and_target

    features, labels = labeled_and_target(FeatureTable.open(labeled), FeatureTable.open(target))
    counters: dict[str, CategoryCounter] = {
        "labeled-search": LabeledSearchCounter(max_k=max_k, seed=seed),
        "mixture": MixtureCounter(seed=seed),
    }
    counters = {name: each for name, each in counters.items() if counter in ("both", name)}
    intervals = {}
    for name, each in counters.items():
        each.fit(features, labels, voice.track)
        if interval:
            intervals[name] = each.interval(track=voice.track)
    if figure:
        from justright.evaluation.figures import to_svg
        from justright.report.count_figures import draw_counts

        write_text(figure, to_svg(draw_counts(counters, intervals)))
        voice.say(f"Curve drawn in {figure}")
    found = {
        name: {
            "n_categories": each.n_categories_,
            "interval": intervals.get(name),
            "curve": each.curve_.tolist(),
            "axes": each.curve_axes,
        }
        for name, each in counters.items()
    }
    result = {"estimates": found, "labeled_classes": len(set(labels.tolist()) - {-1}), "images": len(labels)}
    if out:
        write_json(out, result)
    rows = [(name, each.n_categories_, _text(intervals.get(name)), len(each.curve_)) for name, each in counters.items()]
    voice.table("Number of categories", ("counter", "K", "90 % interval", "points looked at"), rows)
    voice.result(result, agreement([each.n_categories_ for each in counters.values()], list(intervals.values())))


def agreement(estimates: list[int], intervals: list[tuple[int, int]]) -> str:
    """Whether several estimates tell the same, in a sentence."""
    if len(estimates) < 2:
        return ""
    low, high = min(estimates), max(estimates)
    if low == high:
        return f"Both say {low}."
    apart = f"They differ by {high - low} ({(high - low) / low:.0%})"
    if len(intervals) < 2:
        return f"{apart}."
    overlap = max(a for a, _ in intervals) <= min(b for _, b in intervals)
    return f"{apart}; their intervals {'overlap' if overlap else 'do not overlap: trust neither without a look'}."


def _text(interval: tuple[int, int] | None) -> str:
    return f"{interval[0]} to {interval[1]}" if interval else ""
