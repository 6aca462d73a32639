"""Fit the numbers of `probability_right` on finished runs whose truth is known.

    python benchmarks/study_confidence.py RUN [RUN ...] [--only-k-width]

Reads evidence.parquet and the truth of each run, and prints the intercept and the coefficients of a logistic
regression, every run with the same weight; and how far the mean confidence of each problem is from its accuracy with
numbers that were fitted on the others. Runs whose names begin with the same letters are of one source, and are left out
together. `--only-k-width` keeps all other coefficients of the package: each run has an offset of the logit that would
make its mean confidence right, and ridge regression on k_width gives the intercept and that coefficient.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from justright.data.parquet import read_parquet
from justright.discovery.evidence import COEFFICIENTS, INTERCEPT, NAMES
from justright.evaluation import Counts, match_counts
from justright.evaluation.calibration import calibration
from justright.runs.run_folder import RunFolder

STRENGTH = 0.001  # C of scikit-learn, for standardized columns and 300 images a run
IMAGES_A_RUN = 300
OFFSET_SPREAD = 0.5  # standard deviation of the offsets of runs that is expected beforehand
RIDGE = 3.0  # for a standardized column and one offset a run


@dataclass(frozen=True, eq=False)
class Fitted:
    """Intercept and coefficients."""

    intercept: float
    coefficients: np.ndarray

    def probability(self, columns: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-(self.intercept + columns @ self.coefficients)))


@dataclass(frozen=True, eq=False)
class Known:
    """A run: evidence for each image that was judged, and whether it is right."""

    name: str
    columns: np.ndarray
    is_right: np.ndarray

    @property
    def source(self) -> str:
        return re.split(r"\d", self.name, maxsplit=1)[0]


def known(folder: Path) -> Known:
    run = RunFolder.open(folder)
    assert run.truth_file is not None, f"{folder} has no truth"
    judged, table = run.judged(run.truth_file), read_parquet(folder / "evidence.parquet")
    columns = np.stack([table[name].to_numpy() for name in NAMES], axis=1).astype(np.float64)[~judged.is_given]
    named = match_counts(Counts.of(judged.y_true, judged.y_pred)).to_classes(judged.y_pred)
    return Known(re.sub(r"-s\d+$", "", folder.name), columns, named == judged.y_true)


def fitted(runs: Sequence[Known]) -> Fitted:
    columns, is_right = np.concatenate([run.columns for run in runs]), np.concatenate([run.is_right for run in runs])
    weight = np.concatenate([np.full(len(run.is_right), IMAGES_A_RUN / len(run.is_right)) for run in runs])
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    spread[spread == 0] = 1  # a column that is the same everywhere gets no weight
    model = LogisticRegression(C=STRENGTH, max_iter=3000).fit((columns - mean) / spread, is_right, weight)
    coefficients = model.coef_[0] / spread
    return Fitted(float(model.intercept_[0] - coefficients @ mean), coefficients)


def fitted_k_width(runs: Sequence[Known]) -> Fitted:
    """Fit the intercept and the coefficient of k_width, all others as the package has them."""
    place = NAMES.index("k_width")
    coefficients = np.array([COEFFICIENTS[name] for name in NAMES])
    width = np.array([run.columns[0, place] for run in runs])
    start = INTERCEPT + coefficients[place] * width.mean()
    coefficients[place] = 0
    offset = np.array([_offset(start + run.columns @ coefficients, run.is_right) for run in runs])
    standard = (width - width.mean()) / width.std()
    slope = standard @ (offset - offset.mean()) / (len(runs) + RIDGE) / width.std()
    coefficients[place] = slope
    return Fitted(float(start + offset.mean() - slope * width.mean()), coefficients)


def _offset(logit: np.ndarray, is_right: np.ndarray) -> float:
    """The most probable offset, with a normal prior."""

    def slope(offset: float) -> float:
        return float(IMAGES_A_RUN * np.mean(is_right - expit(logit + offset)) - offset / OFFSET_SPREAD**2)

    return float(brentq(slope, -10, 10))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was fitted, and a line for each run that was left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--only-k-width", action="store_true")
    request = parser.parse_args(arguments)
    runs = [known(folder) for folder in request.runs]
    fit = fitted_k_width if request.only_k_width else fitted
    found = fit(runs)
    print(f"INTERCEPT = {found.intercept:.3f}")
    for name, value in zip(NAMES, found.coefficients, strict=True):
        print(f'    "{name}": {value:.3f},')
    print("| run | accuracy | mean confidence | calibration error | area under the curve |\n|---|---|---|---|---|")
    for run in runs:
        others = [each for each in runs if each.source != run.source]
        if others:
            told = fit(others).probability(run.columns)
            of = calibration(told, run.is_right)
            print(f"| {run.name} | {run.is_right.mean():.1%} | {told.mean():.1%} | {of.error:.1%} | {of.auc:.3f} |")


if __name__ == "__main__":
    main()
