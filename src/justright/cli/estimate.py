"""`justright estimate`: how many categories are there?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from justright.cli.common import COUNT, OUT_FILE, OUT_SVG, STORE, Command, NameOf, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.estimation import BEST, COUNTERS
from justright.estimation.base import CategoryCounter
from justright.features.table import FeatureTable, labeled_and_target
from justright.runs.counting import estimate_record
from justright.utils.errors import JustrightError
from justright.utils.files import write_json, write_text
from justright.utils.remote import Place
from justright.utils.types import UNLABELED

SEARCH = "labeled-search"
UNLABELED_COUNTERS = (BEST, "spread")  # those that count without any label


@click.command(cls=Command, tables={"Counters": COUNTERS})
@click.argument("labeled", type=STORE, required=False)
@click.option("--target", type=STORE, required=True, help="Features of the unlabeled images.")
@click.option("--counter", type=NameOf(COUNTERS), default=BEST, help="How the number is estimated.")
@click.option("--other-kinds", is_flag=True, help="The target shows none of the classes of LABELED: do not count them.")
@click.option("--max-k", type=COUNT, help="Largest number that labeled-search tries.")
@click.option("--interval/--no-interval", default=True, help="Also compute a 90 % interval, which takes longer.")
@click.option("--figure", type=OUT_SVG, help="File for a figure of the estimates, as SVG.")
@click.option("--out", type=OUT_FILE, help="File for the estimates, as JSON.")
@run_options("seed")
@with_terminal
def estimate(
    terminal: Terminal,
    labeled: Place | None,
    target: Place,
    counter: str,
    other_kinds: bool,
    max_k: int | None,
    interval: bool,
    figure: Path | None,
    out: Path | None,
    seed: int,
) -> None:
    """Estimate how many categories there are.

    Counts the categories among labeled and target images together, both given as features that `justright extract`
    wrote. Labels of the target are not read. The best counter is combined, which also shows the others;
    its interval is as wide as its errors on problems of known number.

    With --other-kinds only the target is counted, LABELED shows how much images of one class differ, and the estimate
    is right to a factor of 2.5. Without LABELED it assumes classes of usual width, and is right to a factor of about 2.

    \b
    Examples:
      justright estimate labeled.features --target photos.features
      justright estimate labeled.features --target photos.features --figure k.svg
      justright estimate labeled.features --target photos.features \\
          --counter mixture --no-interval
      justright estimate pool.features --target photos.features --other-kinds
      justright estimate --target photos.features
    """
    if other_kinds and counter == SEARCH:
        raise click.UsageError(f"--counter {SEARCH} needs labeled classes that the target shows, not --other-kinds.")
    if labeled is None and (other_kinds or counter not in UNLABELED_COUNTERS):
        option = "--other-kinds" if other_kinds else f"--counter {counter}"
        raise click.UsageError(f"{option} needs LABELED, features of labeled images.")
    names = [counter]
    if counter == BEST:
        names = list(UNLABELED_COUNTERS) if labeled is None else list(COUNTERS)
        if other_kinds:
            names.remove(SEARCH)
    if max_k is not None and SEARCH not in names:
        raise click.UsageError(f"--max-k is for {SEARCH}, which is not among the counters: {', '.join(names)}.")
    unlabeled, pool = FeatureTable.open(target), None
    features, labels = np.asarray(unlabeled.features), np.full(len(unlabeled), UNLABELED)
    if labeled is not None:
        known = FeatureTable.open(labeled)
        features, labels = labeled_and_target(known, unlabeled)
        if other_kinds:
            n = len(known)
            features, labels, pool = features[n:], labels[n:], (features[:n], labels[:n])
    n_classes = len(set(labels.tolist()) - {UNLABELED})
    if max_k is not None and max_k < n_classes:
        raise JustrightError(
            f"--max-k {max_k:,} with {n_classes:,} labeled classes", expected=f"at least {n_classes:,}"
        )
    counters: dict[str, CategoryCounter] = {}
    for name in names:
        options: dict[str, Any] = {"max_k": max_k} if name == SEARCH else {}
        counters[name] = COUNTERS[name](seed=seed, **options).fit(features, labels, pool)
    intervals = {name: counters[name].interval() for name in names} if interval else {}
    records = {name: estimate_record(counters[name], intervals.get(name)) for name in names}
    if figure:
        from justright.report.drawing import to_svg
        from justright.report.run_figures import draw_counts

        write_text(figure, to_svg(draw_counts(records)))
        terminal.say(f"Curve drawn in {figure}")
    result = {"estimates": records, "labeled_classes": n_classes, "images": len(labels)}
    if out:
        write_json(out, result)
    k = {name: counters[name].n_categories_ for name in names}
    ranges = {name: f"{low} to {high}" for name, (low, high) in intervals.items()}
    rows = [(name, k[name], ranges.get(name, ""), len(counters[name].curve_)) for name in names]
    terminal.table("Number of categories", ("counter", "K", "90 % interval", "points of its curve"), rows)
    between = f", 90 % interval {ranges[counter]}" if interval else ""
    terminal.result(result, f"K = {k[counter]}{between}.")
