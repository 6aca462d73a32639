"""Fit the coefficients of `probability_right` on problems whose truth is known.

    python benchmarks/confidence_problems.py choose --photos FOLDER --runs RUNS --draws 2
    python benchmarks/confidence_problems.py choose --photos FOLDER --runs RUNS --draws 2 --k-times 0.7    # 1, 1.3
    python benchmarks/confidence_problems.py choose --photos FOLDER --features FEATURES
    python benchmarks/study_confidence.py RUNS/* --features FEATURES --lines lines.jsonl

Two kinds of problems: finished runs, and problems that are drawn from stored features and clustered without training,
which take a second each. A logistic regression is fitted to the evidence for every image; a run weighs as much as
`RUN_WEIGHT` drawn problems, or as `GIVEN_K_RUN_WEIGHT` if K was given. It prints the intercept and the coefficients,
and compares the mean confidence of each run with its accuracy: with the coefficients of the package, and with
coefficients that were fitted without the source of the run (cub200-even_3 is of the source cub200-even).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from confidence_problems import split_rows
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from study_answers import calibration, right

from justright import CombinedCounter, SemiSupKMeans
from justright.data.parquet import read_parquet
from justright.discovery.evidence import COEFFICIENTS, INTERCEPT, NAMES
from justright.discovery.joint import Inputs, joint_answer
from justright.geometry import unit_rows
from justright.runs.counting import with_margin
from justright.runs.run_folder import RunFolder
from justright.utils.files import write_text
from justright.utils.types import UNLABELED

STRENGTH = 0.001  # C of scikit-learn, for standardized columns
IMAGES_PER_PROBLEM = 300  # every problem counts as so many images
# as multiples of a drawn problem with the estimated K
RUN_WEIGHT, GIVEN_K_RUN_WEIGHT, OTHER_K_WEIGHT = 20.0, 5.0, 0.5
N_AXES = 384  # of stored features
TEMPERATURE = 0.1
TIMES_K = (0.7, 1.0, 1.3)  # K that a user gives, as a multiple of the true one; one of them for each drawn problem


@dataclass(frozen=True, eq=False)
class Known:
    """The evidence for each image of a problem, and whether its category is right."""

    name: str
    evidence: np.ndarray
    is_right: np.ndarray
    weight: float

    @property
    def source(self) -> str:
        return self.name.split("_")[0]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Intercept and coefficients."""

    intercept: float
    coefficients: np.ndarray

    def probability(self, evidence: np.ndarray) -> np.ndarray:
        return expit(self.intercept + evidence @ self.coefficients)


PACKAGE = Fitted(INTERCEPT, np.array([COEFFICIENTS[name] for name in NAMES]))


def known_run(folder: Path) -> Known:
    """A finished run with truth."""
    run = RunFolder.open(folder)
    assert run.truth_file is not None, f"{folder} has no truth"
    judged, table = run.judged(run.truth_file), read_parquet(folder / "evidence.parquet")
    evidence = np.stack([table[name].to_numpy() for name in NAMES], axis=1)[~judged.is_given]
    weight = GIVEN_K_RUN_WEIGHT if run.about["k_source"] == "given" else RUN_WEIGHT
    return Known(folder.name, evidence, right(judged.y_true, judged.y_pred), weight)


def drawn_problems(file: Path, n_draws: int) -> Iterator[Known]:
    """Problems from the features of one source, each answered with the estimated K and with a given one."""
    stored = np.load(file, allow_pickle=False)
    centered = stored["x"] - stored["x"].mean(axis=0, dtype=np.float64)
    axes = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :N_AXES]
    x, y = (centered @ axes).astype(np.float32), stored["y"]
    for seed in range(n_draws):
        labeled, labels, target, y_true, n_known = draw(y, file.stem, seed)
        rows = np.concatenate([x[labeled], x[target]])
        counter = CombinedCounter(seed=0).fit(rows, np.concatenate([labels, np.full(len(target), UNLABELED)]))
        low, high = (max(bound, n_known) for bound in counter.interval())
        estimate = max(counter.n_categories_, n_known)
        k = with_margin({"n_categories": estimate, "interval": (low, high)}, n_known)
        given = max(n_known, round(TIMES_K[seed % 3] * len(np.unique(y_true))))
        for n_categories, weight in ((k, 1.0), (given, OTHER_K_WEIGHT)):
            below = max(0.0, float(np.log(estimate / n_categories)))
            category, evidence = answer(x[labeled], labels, x[target], n_categories, below)
            yield Known(f"{file.stem}_{seed}", evidence, right(y_true, category), weight)


def draw(y: np.ndarray, source: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """Rows and classes of labeled images, rows and classes of the target, number of known classes.

    12 to 100 categories of 8 to 40 images, 20 to 65 % of them known, with 4 to 16 labeled images each; in two fifths of
    the problems categories are uneven.
    """
    rng = np.random.default_rng([seed, sum(map(ord, source))])
    n_classes = int(y.max()) + 1
    n = min(n_classes, round(np.exp(rng.uniform(np.log(12), np.log(min(100, n_classes) + 0.5)))))
    per_class, n_labeled = round(np.exp(rng.uniform(np.log(8), np.log(40)))), int(rng.integers(4, 17))
    is_uneven = rng.random() < 0.4
    chosen = rng.permutation(n_classes)[:n]
    n_known = max(4, round(rng.uniform(0.2, 0.65) * n))
    first, second = split_rows(y, chosen, n_known, n_labeled, per_class, is_uneven, rng)
    number = np.empty(n_classes, dtype=np.int64)
    number[chosen] = np.arange(n)
    return first, number[y[first]], second, number[y[second]], n_known


def answer(
    labeled: np.ndarray, labels: np.ndarray, target: np.ndarray, n_categories: int, below: float
) -> tuple[np.ndarray, np.ndarray]:
    """The joint answer without training, and its evidence; semi-supervised k-means is the method."""
    z = np.concatenate([labeled, target]).astype(np.float64)
    z = unit_rows(z - z.mean(axis=0))
    known = np.concatenate([labels, np.full(len(target), UNLABELED)])
    method = SemiSupKMeans(n_clusters=n_categories, n_init=2, seed=0).fit(z, known)
    centroids = np.stack([z[method.labels_ == k].sum(axis=0) for k in range(n_categories)])
    probability = softmax(z @ unit_rows(centroids).T / TEMPERATURE, axis=1).astype(np.float32)
    inputs = Inputs(labeled, [labeled], [probability[: len(labeled)]])

    def target_at(rows: np.ndarray) -> Inputs:
        return Inputs(target[rows], [target[rows]], [probability[len(labeled) + rows]])

    given = np.full(len(target), UNLABELED)
    _, joint, _ = joint_answer(inputs, labels, target_at, given, n_categories, TEMPERATURE, below=below)
    return joint.category, joint.evidence


def fitted(problems: Sequence[Known]) -> Fitted:
    """Logistic regression on the evidence for all images."""
    evidence, is_right = (
        np.concatenate([getattr(each, name) for each in problems]) for name in ("evidence", "is_right")
    )
    size = [len(each.is_right) for each in problems]
    weight = np.repeat([IMAGES_PER_PROBLEM * each.weight / n for each, n in zip(problems, size, strict=True)], size)
    mean, spread = evidence.mean(axis=0), evidence.std(axis=0)
    spread[spread < 1e-9] = 1  # a column that is the same everywhere gets no weight
    model = LogisticRegression(C=STRENGTH, max_iter=3000).fit((evidence - mean) / spread, is_right, weight)
    coefficients = model.coef_[0] / spread
    return Fitted(float(model.intercept_[0] - coefficients @ mean), coefficients)


def line_of(run: Known, others: Fitted) -> dict[str, float | str]:
    """Accuracy, mean confidence and calibration error of a run in percent."""
    line: dict[str, float | str] = {"run": run.name, "n": len(run.is_right)}
    line["right"] = round(100 * float(run.is_right.mean()), 1)
    for name, fit in (("package", PACKAGE), ("left out", others)):
        of = calibration(fit.probability(run.evidence), run.is_right)
        line |= {f"{name}: confidence": round(100 * of.confidence, 1), f"{name}: error": round(100 * of.error, 1)}
    return line


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the coefficients, and a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--features", type=Path, help="folder with features of the sources")
    parser.add_argument("--draws", type=int, default=60, help="problems drawn from each source")
    parser.add_argument("--lines", type=Path, help="file for a line of each run")
    request = parser.parse_args(arguments)
    runs = [known_run(folder) for folder in request.runs]
    files = sorted(request.features.glob("*.npz")) if request.features else []
    problems = runs + [each for file in files for each in drawn_problems(file, request.draws)]
    fit = fitted(problems)
    print(f"{len(runs)} runs, {len(problems) - len(runs)} answers to drawn problems")
    print(f"INTERCEPT = {fit.intercept:.3f}")
    for name, value in zip(NAMES, fit.coefficients, strict=True):
        print(f'    "{name}": {value:.3f},')
    without = {
        source: fitted([each for each in problems if each.source != source]) for source in {r.source for r in runs}
    }
    lines = [line_of(run, without[run.source]) for run in runs]
    print("| " + " | ".join(lines[0]) + " |\n" + "|---" * len(lines[0]) + "|")
    for line in lines:
        print("| " + " | ".join(map(str, line.values())) + " |")
    for name in ("package", "left out"):
        gaps = np.array([line[f"{name}: confidence"] - line["right"] for line in lines])
        errors = [line[f"{name}: error"] for line in lines]
        close = f"within 5 points {np.sum(np.abs(gaps) <= 5)} of {len(gaps)}"
        print(f"{name}: mean gap {gaps.mean():+.1f}, absolute {np.abs(gaps).mean():.1f}, {close}, ", end="")
        print(f"standard deviation {gaps.std():.1f}, error median {np.median(errors):.1f}, worst {max(errors):.1f}")
    if request.lines:
        write_text(request.lines, "".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    main()
