"""Evaluate a million images of 2,000 classes, against a plain loop.

    PYTHONPATH=src python benchmarks/bench_evaluate.py

The plain loop counts image by image into a square matrix in a Python loop, solves one assignment and sums the matches
of each class in another loop, without intervals, NMI or ARI. Seconds are CPU time, which other load changes little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import load, timed
from scipy.optimize import linear_sum_assignment

from justright.evaluation import Counts, break_down, evaluate, match_counts

N_IMAGES, N_CLASSES, N_RUNS = 1_000_000, 2_000, 3


def plain_evaluate(y_true: np.ndarray, y_pred: np.ndarray, is_old: np.ndarray) -> tuple[float, float, float]:
    """All, old and new accuracy by loops."""
    size = max(y_true.max(), y_pred.max()) + 1
    shared = np.zeros((size, size), dtype=np.int64)
    for i in range(len(y_true)):
        shared[y_pred[i], y_true[i]] += 1
    rows, columns = linear_sum_assignment(shared.max() - shared)
    cluster_of = dict(zip(columns.tolist(), rows.tolist(), strict=True))
    old_classes = set(y_true[is_old].tolist())
    right, total = {True: 0, False: 0}, {True: 0, False: 0}
    for c in set(y_true.tolist()):
        right[c in old_classes] += int(shared[cluster_of[c], c])
        total[c in old_classes] += int(shared[:, c].sum())
    return sum(right.values()) / len(y_true), right[True] / total[True], right[False] / total[False]


def best_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    runs = [timed(work) for _ in range(N_RUNS)]
    return min(run.cpu for run in runs), runs[0].value


def main() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, N_CLASSES, N_IMAGES)
    y_pred = np.where(rng.random(N_IMAGES) < 0.4, rng.integers(0, N_CLASSES, N_IMAGES), (y_true * 7) % 2003)
    is_old = y_true < N_CLASSES // 2
    print(f"{N_IMAGES:,} images, {N_CLASSES:,} classes, best of {N_RUNS}, {load()}")
    plain, reference = best_seconds(lambda: plain_evaluate(y_true, y_pred, is_old))
    print(f"plain loop                                 {plain:7.2f} s")
    whole, scores = best_seconds(lambda: evaluate(y_true, y_pred, is_old))
    print(f"evaluate, with intervals, NMI and ARI      {whole:7.2f} s  {plain / whole:5.1f} times")
    matching, _ = best_seconds(lambda: match_counts(Counts.of(y_true, y_pred)))
    print(f"Counts.of and match_counts                 {matching:7.2f} s  {plain / matching:5.1f} times")
    errors, _ = best_seconds(lambda: break_down(y_true, y_pred, is_old))
    print(f"break_down                                 {errors:7.2f} s")
    print(scores)
    np.testing.assert_allclose(reference, (scores.all, scores.old, scores.new))


if __name__ == "__main__":
    main()
