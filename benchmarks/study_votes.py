"""Is the vote of several seeds better than one seed, and is its confidence better calibrated?

    justright benchmark run training --out study
    python benchmarks/study_votes.py study --setting simgcd

Reads the runs of a suite, lets the seeds of each problem vote, and prints All, and how far confidences are off: the
Brier score (mean squared distance between confidence and 1 or 0 for right or wrong) and the calibration error over
ten equally filled bins. Clusters are matched with classes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from study_answers import calibration

from justright.discovery.predictions import Predictions, consensus
from justright.evaluation import Counts, match_counts
from justright.evaluation.files import read_judged
from justright.runs.run_folder import RunFolder


def scores_of(predictions: Predictions, y_true: np.ndarray) -> tuple[float, float, float]:
    """Accuracy, Brier score and calibration error."""
    is_right = match_counts(Counts.of(y_true, predictions.cluster)).to_classes(predictions.cluster) == y_true
    measured = calibration(predictions.confidence, is_right)
    return measured.accuracy, float(np.mean((predictions.confidence - is_right) ** 2)), measured.error


def main() -> None:
    """Print a row for each problem: the mean of the runs, then their vote."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="folder of `justright benchmark run --out`")
    parser.add_argument("--setting", default="simgcd")
    options = parser.parse_args()
    print("| problem | seeds | All, one | All, vote | Brier, one | Brier, vote | error, one | error, vote |")
    print("|---|---|---|---|---|---|---|---|")
    for problem in sorted((options.study / "runs").iterdir()):
        folders = sorted(problem.glob(f"{options.setting}-[0-9]"))
        if len(folders) < 2:
            continue
        runs = [RunFolder(folder) for folder in folders]
        truth = runs[0].truth_file
        assert truth is not None, "a problem of a suite has a truth"
        y_true = read_judged(folders[0] / "predictions.parquet", truth).y_true
        one = np.mean([scores_of(run.predictions, y_true) for run in runs], axis=0)
        vote = scores_of(consensus([run.predictions for run in runs]).predictions, y_true)
        cells = [f"{100 * value:.1f}" for pair in zip(one, vote, strict=True) for value in pair]
        print(f"| {problem.name} | {len(runs)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
