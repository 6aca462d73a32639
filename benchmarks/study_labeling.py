"""How far estimates of K depend on how images are labeled, and the coefficients that correct for it.

    python benchmarks/confidence_problems.py choose --photos FOLDER --features FEATURES/choose
    python benchmarks/confidence_problems.py judge --photos FOLDER --features FEATURES/judge
    python benchmarks/study_labeling.py FEATURES/choose FEATURES/judge --lines lines.jsonl

Three kinds of problems are drawn from stored features:

    apart    4 to 16 labeled images of each known class, none of them in the target; 20 to 65 % of the classes known
    within   a share of the images of each known class is labeled, the others are in the target, as in the papers
    known    as apart, with 80, 90 or 100 % of the classes known

The `COEFFICIENTS` of the correction are fitted on the first folder, where errors are those of sources left out of the
fit, and judged on the second with the coefficients of the package. Errors are of log K.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from confidence_problems import split_rows
from study_confidence import draw

from justright import CombinedCounter
from justright.estimation.combined import COEFFICIENTS
from justright.utils.files import write_text
from justright.utils.types import UNLABELED

KINDS = ("apart", "within", "known")
WEIGHT = {"known": 0.6}  # of a problem in the fit, by kind; 1 for the others
STRENGTH = 0.5  # of the ridge, as a multiple of the median of 1 / slope^2
MOST_IMAGES = 2_500
PACKAGE = np.array(COEFFICIENTS)

Rows = tuple[np.ndarray, np.ndarray]  # labeled images, target


def draw_apart(y: np.ndarray, source: str, seed: int) -> Rows:
    """The problems of `study_confidence.py`."""
    labeled, _, target, _, _ = draw(y, source, seed)
    return labeled, target


def draw_within(y: np.ndarray, source: str, seed: int) -> Rows:
    """12 to 120 categories of 8 to 40 images; 25, 50 or 75 % known, with 30, 50 or 80 % of their images labeled."""
    rng = np.random.default_rng([seed, sum(map(ord, source)), 99])
    n_classes = int(y.max()) + 1
    n = min(n_classes, round(np.exp(rng.uniform(np.log(12), np.log(min(120, n_classes) + 0.5)))))
    per_class, share = round(np.exp(rng.uniform(np.log(8), np.log(40)))), float(rng.choice([0.5, 0.5, 0.3, 0.8]))
    is_uneven = rng.random() < 0.35
    n_known = max(4, round(float(rng.choice([0.5, 0.5, 0.5, 0.25, 0.75])) * n))
    labeled, target = [], []
    for place, label in enumerate(rng.permutation(n_classes)[:n]):
        rows = rng.permutation(np.flatnonzero(y == label))[:per_class]
        if is_uneven:
            rows = rows[: max(4, round(len(rows) * rng.uniform(0.2, 1)))]
        if place < n_known:
            n_labeled = min(max(1, round(share * len(rows))), len(rows) - 1)
            labeled.append(rows[:n_labeled])
            rows = rows[n_labeled:]
        target.append(rows)
    return np.concatenate(labeled), np.concatenate(target)


def draw_known(y: np.ndarray, source: str, seed: int) -> Rows:
    """12 to 60 categories, nearly all of them known."""
    rng = np.random.default_rng([seed, len(source), 5])
    n_classes = int(y.max()) + 1
    n = min(n_classes, round(np.exp(rng.uniform(np.log(12), np.log(min(60, n_classes) + 0.5)))))
    chosen = rng.permutation(n_classes)[:n]
    n_known = max(4, round(rng.choice([1.0, 0.9, 0.8]) * n))
    n_labeled, per_class = int(rng.integers(4, 17)), int(rng.integers(8, 25))
    return split_rows(y, chosen, n_known, n_labeled, per_class, bool(rng.random() < 0.4), rng)


DRAW = dict(zip(KINDS, (draw_apart, draw_within, draw_known), strict=True))


def lines_of(folder: Path, n_draws: int) -> Iterator[dict[str, Any]]:
    """A line for each problem of each source."""
    for file in sorted(folder.glob("*.npz")):
        stored = np.load(file, allow_pickle=False)
        x, y = stored["x"], stored["y"]
        for kind in KINDS:
            for seed in range(n_draws if kind != "known" else -(-n_draws // 3)):
                labeled, target = DRAW[kind](y, file.stem, seed)
                if len(labeled) + len(target) > MOST_IMAGES:
                    continue
                labels = np.concatenate([y[labeled], np.full(len(target), UNLABELED)])
                counter = CombinedCounter(seed=0).fit(x[np.concatenate([labeled, target])], labels)
                share = counter.spread_share
                before = share * math.log(counter.estimates_["spread"])
                before += (1 - share) * math.log(counter.estimates_["mixture"])
                yield {
                    "part": folder.name,
                    "source": file.stem,
                    "kind": kind,
                    "seed": seed,
                    "k": len(np.unique(y[np.concatenate([labeled, target])])),
                    "classes": len(np.unique(y[labeled])),
                    "before": round(before, 4),
                    "terms": [round(term, 4) for term in counter.correction_terms_],
                    "interval": counter.interval(),
                }
        print(f"{folder.name}: {file.stem}", flush=True)


def fitted(lines: Sequence[dict[str, Any]]) -> np.ndarray:
    """The coefficients, by ridge regression."""
    terms = np.array([line["terms"] for line in lines])
    error = np.array([math.log(line["k"]) - line["before"] for line in lines])
    weight = np.array([WEIGHT.get(line["kind"], 1.0) for line in lines])
    ridge = STRENGTH * np.median(terms[:, 2] ** 2) * np.eye(3)
    return np.linalg.solve((terms * weight[:, None]).T @ terms + ridge, (terms * weight[:, None]).T @ error)


def errors(lines: Sequence[dict[str, Any]], coefficients: np.ndarray) -> np.ndarray:
    """log(estimate / K)."""
    estimates = [max(line["before"] + coefficients @ line["terms"], math.log(line["classes"])) for line in lines]
    return np.array(estimates) - np.log([line["k"] for line in lines])


def show(lines: Sequence[dict[str, Any]], coefficients: np.ndarray, without: dict[str, np.ndarray] | None) -> None:
    """A row for each kind: mean and mean absolute error before and after, and how often the interval holds K."""
    for kind in KINDS:
        of_kind = [line for line in lines if line["kind"] == kind]
        after = np.concatenate(
            [errors([line], coefficients if without is None else without[line["source"]]) for line in of_kind]
        )
        before = errors(of_kind, np.zeros(3))
        held = sum(line["interval"][0] <= line["k"] <= line["interval"][1] for line in of_kind)
        cells = [f"{100 * each.mean():+.1f}, {100 * np.abs(each).mean():.1f}" for each in (before, after)]
        print(f"| {of_kind[0]['part']} | {kind} | {len(of_kind)} | {' | '.join(cells)} | {held} |")


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit on the first folder, judge on the second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("choose", type=Path)
    parser.add_argument("judge", type=Path)
    parser.add_argument("--draws", type=int, default=20, help="problems of each kind and source")
    parser.add_argument("--lines", type=Path, help="file for a line of each problem")
    request = parser.parse_args(arguments)
    choose, judge = (list(lines_of(folder, request.draws)) for folder in (request.choose, request.judge))
    if request.lines:
        write_text(request.lines, "".join(f"{json.dumps(line)}\n" for line in choose + judge))
    print("fitted:", fitted(choose).round(4).tolist())
    sources = {line["source"] for line in choose}
    without = {source: fitted([line for line in choose if line["source"] != source]) for source in sources}
    print("| part | kind | problems | mean and mean absolute error, % | with the correction | interval holds K |")
    print("|---|---|---|---|---|---|")
    show(choose, PACKAGE, without)
    show(judge, PACKAGE, None)


if __name__ == "__main__":
    main()
