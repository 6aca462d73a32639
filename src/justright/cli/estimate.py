"""`justright estimate`: how many categories are there?"""

from __future__ import annotations

from pathlib import Path

import click

from justright.cli.terminal import Terminal, with_terminal
from justright.features.table import FeatureTable
from justright.files import write_json, write_text

STORE = click.Path(path_type=Path, exists=True, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)

# known where scipy is imported, which would make --help slow; a test keeps them equal
COUNTERS = ("combined", "labeled-search", "mixture", "spread")


@click.command()
@click.argument("labeled", type=STORE)
@click.option("--target", type=STORE, required=True, help="Features of the unlabeled images.")
@click.option(
    "--counter",
    type=click.Choice(COUNTERS),
    default=COUNTERS[0],
    show_default=True,
    help="combined shows what the others say beside it.",
)
@click.option(
    "--other-kinds", is_flag=True, help="LABELED shows other kinds than the target: do not count its classes."
)
@click.option("--max-k", type=click.IntRange(1), help="The largest K that labeled-search looks at.")
@click.option("--interval/--no-interval", default=True, show_default=True, help="Resample for an interval.")
@click.option("--figure", type=FILE, help="Where the curve goes, as SVG.")
@click.option("--out", type=FILE, help="Where the estimates go, as JSON.")
@click.option("--seed", default=0, show_default=True)
@with_terminal
def estimate(
    terminal: Terminal,
    labeled: Path,
    target: Path,
    counter: str,
    other_kinds: bool,
    max_k: int | None,
    interval: bool,
    figure: Path | None,
    out: Path | None,
    seed: int,
) -> None:
    """Estimate the number of categories among LABELED and target images.

    combined is the answer to take: one K from spread and mixture, with an interval as wide as such answers were off
    where the truth was known. spread takes the K at which clusters are as tight as labeled classes, mixture splits and
    merges Gaussians (GPC), labeled-search takes the K at which k-means agrees best with the labels (GCD).

    All read features that `justright extract` wrote; labels of the target are not looked at. With --other-kinds the
    target is counted alone, LABELED tells what classes look like, and K is known to a factor of 2.5 only.

    \b
    Examples:
      justright estimate labeled.features --target photos.features
      justright estimate labeled.features --target photos.features --figure k.svg --json
      justright estimate labeled.features --target photos.features --counter mixture --no-interval
      justright estimate pool.features --target photos.features --other-kinds
    """
    from justright.estimation import COUNTERS as COUNTER_CLASSES
    from justright.estimation import CategoryCounter, LabeledSearchCounter
    from justright.features.table import labeled_and_target

    tables = FeatureTable.open(labeled), FeatureTable.open(target)
    features, labels = labeled_and_target(*tables)
    pool = None
    if other_kinds:
        n_labeled = len(tables[0])
        pool = features[:n_labeled], labels[:n_labeled]
        features, labels = features[n_labeled:], labels[n_labeled:]
    counters: dict[str, CategoryCounter] = {
        name: LabeledSearchCounter(max_k=max_k, seed=seed) if name == "labeled-search" else made(seed=seed)  # type: ignore[call-arg]
        for name, made in COUNTER_CLASSES.items()
        if name == counter or (counter == COUNTERS[0] and not (other_kinds and name == "labeled-search"))
    }
    intervals = {}
    for name, each in counters.items():
        each.fit(features, labels, terminal.track, pool)
        if interval:
            intervals[name] = each.interval(track=terminal.track)
    if figure:
        from justright.evaluation.figures import to_svg
        from justright.report.count_figures import draw_counts

        write_text(figure, to_svg(draw_counts(counters, intervals)))
        terminal.say(f"Curve drawn in {figure}")
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
    terminal.table("Number of categories", ("counter", "K", "90 % interval", "points looked at"), rows)
    terminal.result(result, answer({name: each.n_categories_ for name, each in counters.items()}, intervals))


def answer(estimates: dict[str, int], intervals: dict[str, tuple[int, int]]) -> str:
    """What the combined estimate says, and the others beside it, in a sentence; nothing for another one alone."""
    if COUNTERS[0] not in estimates:
        return ""
    interval = _text(intervals.get(COUNTERS[0]))
    others = sorted(k for name, k in estimates.items() if name != COUNTERS[0])
    beside = f"all others say {others[0]}" if others[0] == others[-1] else f"the others say {others[0]} to {others[-1]}"
    return f"K = {estimates[COUNTERS[0]]}{interval and f', nine times in ten {interval}'}; {beside}."


def _text(interval: tuple[int, int] | None) -> str:
    return f"{interval[0]} to {interval[1]}" if interval else ""
