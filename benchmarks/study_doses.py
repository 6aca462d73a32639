"""Accuracy by number of labels, size and distance of the pool: figure and table from lines of the suite `doses`.

python benchmarks/study_doses.py docs/results/doses/results.jsonl --figure docs/images/doses.svg
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from justright.benchmark.results import Line, read_results
from justright.report.drawing import to_svg
from justright.utils.files import write_text

OWN, POOL = "own", "everything"
BASE = "50% of the classes labeled"  # the problem that all doses start from: its pool has 285 classes
PANELS = {
    "labeled classes": [f"{share}% of the classes labeled" for share in (10, 20, 50, 80)],
    "labeled images of a class": [
        "10% of their images labeled",
        "25% of their images labeled",
        BASE,
        "80% of their images labeled",
    ],
    "size of the pool": [OWN, "pool of 48 classes", "pool of 96 classes", BASE, "pool of all other scripts"],
    "distance of the pool": [OWN, "pool of kin", BASE, "far pool"],
}
TICKS = {
    "labeled classes": ["10 %", "20 %", "50 %", "80 %"],
    "labeled images of a class": ["10 %", "25 %", "50 %", "80 %"],
    "size of the pool": ["none", "48", "96", "285", "about 800"],
    "distance of the pool": ["none", "same family", "mixed", "shapes"],
}

Scores = dict[tuple[str, str], dict[str, float]]  # dose and setting: accuracy of each target and split


def scores_of(lines: Sequence[Line], group: str) -> Scores:
    """The score of each problem in percent, by dose and setting."""
    scores: Scores = defaultdict(dict)
    for line in lines:
        target, dose, split = re.fullmatch(r"(.+?), (.+), (split \d+)", line["problem"]).groups()  # type: ignore[union-attr]
        scores[dose, line["setting"]][f"{target}, {split}"] = 100 * line[group]
    return scores


def series(scores: Scores, panel: str, setting: str) -> list[dict[str, float]]:
    """The scores along a panel; the dose "own" is the problem that all doses start from, without a pool."""
    return [scores.get((BASE, OWN) if dose == OWN else (dose, setting), {}) for dose in PANELS[panel]]


def main() -> None:
    """Print the table and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--group", default="all", choices=("all", "old", "new"))
    options = parser.parse_args()
    scores = scores_of([line for line in read_results(options.lines) if "failed" not in line], options.group)
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    axes = figure.subplots(1, len(PANELS), sharey=True)
    print("| dose | value | own labels | with the pool | difference |\n|---|---|---|---|---|")
    for axis, panel in zip(axes, PANELS, strict=True):
        own, pooled = series(scores, panel, OWN), series(scores, panel, POOL)
        for place, tick in enumerate(TICKS[panel]):
            means = [f"{np.mean(list(each[place].values())):.1f}" if each[place] else "" for each in (own, pooled)]
            both = own[place].keys() & pooled[place].keys()
            change = [pooled[place][name] - own[place][name] for name in both]
            print(f"| {panel} | {tick} | {' | '.join(means)} | {f'{np.mean(change):+.1f}' if change else ''} |")
        if OWN in PANELS[panel]:  # without a pool there is one accuracy only
            axis.axhline(float(np.mean(list(own[0].values()))), color="C0", linestyle="--")
            own = []
        for values, name in ((own, "own labels alone"), (pooled, "with the pool as a guide")):
            places = [place for place, each in enumerate(values) if each]
            means = [float(np.mean(list(values[place].values()))) for place in places]
            if len(places) > 1:
                axis.plot(places, means, marker="o", label=name, color="C0" if values is own else "C1")
        for name in sorted({name for each in pooled for name in each}):  # single problems in the background
            line = [(place, each[name]) for place, each in enumerate(pooled) if name in each]
            axis.plot(*zip(*line, strict=True), color="0.8", linewidth=0.7, zorder=0)
        axis.set_title(panel, fontsize=10)
        axis.set_xticks(range(len(TICKS[panel])), TICKS[panel], fontsize=8)
    axes[0].set_ylabel(f"accuracy, {options.group} images, %")
    axes[0].legend(fontsize=8)
    if options.figure:
        write_text(options.figure, to_svg(figure))


if __name__ == "__main__":
    main()
