"""Fit the numbers of `probability_right` on finished runs whose truth is known.

    python benchmarks/study_confidence.py RUN [RUN ...] [--only hidden untrained] [--lines choose.jsonl]

Reads evidence.parquet and the truth of each run, and prints the intercept and the coefficients of a logistic
regression, every run with the same weight; and how far the mean confidence of each problem is from its accuracy with
numbers that were fitted on the others. Runs whose names begin with the same letters are of one source, and are left out
together. `--only` fits the intercept and columns that are the same for all images of a run, and keeps all other
coefficients of the package: each run has an offset of the logit that would make its mean confidence right, and ridge
regression on these columns gives their coefficients. The column "hidden" is computed again from the model of the run.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from justright.data.parquet import read_parquet
from justright.discovery.evidence import COEFFICIENTS, INTERCEPT, NAMES
from justright.discovery.hidden import hidden_class_shift
from justright.discovery.joint import N_NEIGHBORS, NEIGHBOR_SHARE, JointAnswer
from justright.discovery.model_files import JOINT, about_model
from justright.evaluation import Counts, match_counts
from justright.evaluation.calibration import calibration
from justright.runs.run_folder import RunFolder
from justright.utils.files import write_text

STRENGTH = 0.001  # C of scikit-learn, for standardized columns and 300 images a run
IMAGES_A_RUN = 300
OFFSET_SPREAD = 0.5  # standard deviation of the offsets of runs that is expected beforehand
RIDGE = 3.0  # for standardized columns and one offset a run


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
    columns = evidence_of(folder, table)[~judged.is_given]
    named = match_counts(Counts.of(judged.y_true, judged.y_pred)).to_classes(judged.y_pred)
    return Known(re.sub(r"-s\d+$", "", folder.name), columns, named == judged.y_true)


def evidence_of(folder: Path, table: Any) -> np.ndarray:
    """The columns of a run as this version has them, also of a run of an older one."""
    is_untrained = RunFolder.open(folder).about["method"] == "kmeans"
    own = {"hidden": hidden_of(folder), "untrained": float(is_untrained)}
    own |= {name: 0.0 for name in NAMES if name.endswith(" tuned") and is_untrained}
    columns = [np.full(len(table), own[name]) if name in own else table[name].to_numpy() for name in NAMES]
    return np.stack(columns, axis=1).astype(np.float64)


def hidden_of(folder: Path) -> float:
    """`hidden_class_shift` of a finished run, from the anchors in its model."""
    tensors = load_file(folder / "model.safetensors")
    of_joint = {name.removeprefix(JOINT): part for name, part in tensors.items() if name.startswith(JOINT)}
    answer = JointAnswer.of(of_joint, about_model(folder)["joint"])
    first = answer.space.tuned[0].directions.shape[1]
    frozen = answer.anchors[:, first : first + answer.space.frozen.directions.shape[1]]
    fixed = np.where(np.arange(len(frozen)) < answer.n_labeled, answer.category, -1)
    numbers = answer.n_labeled, len(answer.clusters.size), N_NEIGHBORS, NEIGHBOR_SHARE
    return hidden_class_shift(frozen, fixed, *numbers)


def fitted(runs: Sequence[Known]) -> Fitted:
    columns, is_right = np.concatenate([run.columns for run in runs]), np.concatenate([run.is_right for run in runs])
    weight = np.concatenate([np.full(len(run.is_right), IMAGES_A_RUN / len(run.is_right)) for run in runs])
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    spread[spread == 0] = 1  # a column that is the same everywhere gets no weight
    model = LogisticRegression(C=STRENGTH, max_iter=3000).fit((columns - mean) / spread, is_right, weight)
    coefficients = model.coef_[0] / spread
    return Fitted(float(model.intercept_[0] - coefficients @ mean), coefficients)


def fitted_only(names: Sequence[str], runs: Sequence[Known]) -> Fitted:
    """Fit the intercept and the coefficients of these columns of a whole run, all others as the package has them."""
    places = [NAMES.index(name) for name in names]
    coefficients = np.array([COEFFICIENTS[name] for name in NAMES])
    coefficients[places] = 0
    offset = np.array([_offset(INTERCEPT + run.columns @ coefficients, run.is_right) for run in runs])
    if not places:
        return Fitted(float(INTERCEPT + offset.mean()), coefficients)
    values = np.array([run.columns[0, places] for run in runs])
    spread = np.where(values.std(axis=0) == 0, 1, values.std(axis=0))
    model = Ridge(RIDGE).fit((values - values.mean(axis=0)) / spread, offset)
    slope = model.coef_ / spread
    coefficients[places] = slope
    return Fitted(float(INTERCEPT + model.intercept_ - slope @ values.mean(axis=0)), coefficients)


def _offset(logit: np.ndarray, is_right: np.ndarray) -> float:
    """The most probable offset, with a normal prior."""

    def slope(offset: float) -> float:
        return float(IMAGES_A_RUN * np.mean(is_right - expit(logit + offset)) - offset / OFFSET_SPREAD**2)

    return float(brentq(slope, -10, 10))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was fitted, and a line for each run that was left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="COLUMN")
    parser.add_argument("--lines", type=Path, help="file for a line of each run")
    request = parser.parse_args(arguments)
    runs = [known(folder) for folder in request.runs]
    fit = fitted if request.only is None else partial(fitted_only, request.only)
    found = fit(runs)
    print(f"INTERCEPT = {found.intercept:.3f}")
    for name, value in zip(NAMES, found.coefficients, strict=True):
        print(f'    "{name}": {value:.3f},')
    lines = []
    for run in runs:
        others = [each for each in runs if each.source != run.source]
        before = Fitted(INTERCEPT, np.array([COEFFICIENTS[name] for name in NAMES]))
        told = {"package": before.probability(run.columns)}
        told |= {"left out": fit(others).probability(run.columns)} if others else {}
        line = {"run": run.name, "n": len(run.is_right), "right": round(100 * float(run.is_right.mean()), 1)}
        line |= {
            name: round(float(run.columns[0, NAMES.index(name)]), 3) for name in ("k_width", "hidden", "untrained")
        }
        for name, confidence in told.items():
            of = calibration(confidence, run.is_right)
            line |= {f"{name}: confidence": round(100 * of.confidence, 1), f"{name}: error": round(100 * of.error, 1)}
        lines.append(line)
    print("| " + " | ".join(lines[0]) + " |\n" + "|---" * len(lines[0]) + "|")
    for line in lines:
        print("| " + " | ".join(map(str, line.values())) + " |")
    for name in ("package", "left out"):
        gaps = np.array([line[f"{name}: confidence"] - line["right"] for line in lines if f"{name}: error" in line])
        errors = [line[f"{name}: error"] for line in lines if f"{name}: error" in line]
        if len(gaps):
            close = f"within 5 points {np.sum(np.abs(gaps) <= 5)} of {len(gaps)}"
            print(f"{name}: mean gap {gaps.mean():+.1f}, absolute {np.abs(gaps).mean():.1f}, {close}, ", end="")
            print(f"standard deviation {gaps.std():.1f}, error median {np.median(errors):.1f}, worst {max(errors):.1f}")
    if request.lines:
        write_text(request.lines, "".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    main()
