"""The joint answer for a million random feature vectors: seconds, memory and accuracy.

    python benchmarks/bench_joint.py --images 1000000

Vectors are drawn when they are read, so that memory is that of the answer alone.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from justright.discovery.joint import Inputs, joint_answer, probabilities
from justright.evaluation import Counts, match_counts

N_CATEGORIES, N_KNOWN, DIM, PER_CLASS = 200, 80, 128, 20


def main() -> None:
    """Draw, answer, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--noise", type=float, default=1.6, help="spread of a category beside that of their centers")
    options = parser.parse_args()
    centers = np.random.default_rng(0).normal(size=(N_CATEGORIES, DIM)).astype(np.float32)

    def inputs(y: np.ndarray, seed: int) -> Inputs:
        rng = np.random.default_rng(seed)
        frozen, tuned = (
            centers[y] + options.noise * rng.normal(size=(len(y), DIM)).astype(np.float32) for _ in range(2)
        )
        return Inputs(frozen, [tuned], [probabilities(tuned @ centers.T / DIM, 0.1)])

    def classes(rows: np.ndarray) -> np.ndarray:
        return rows * 7919 % N_CATEGORIES

    def target_at(rows: np.ndarray) -> Inputs:
        return inputs(classes(rows), int(rows[0]))

    labels = np.repeat(np.arange(N_KNOWN), PER_CLASS)
    started, given = time.perf_counter(), np.full(options.images, -1)
    labeled = inputs(labels, 1)
    _, answer, _ = joint_answer(labeled, labels, target_at, given, N_CATEGORIES, 0.1)
    seconds = time.perf_counter() - started
    y = classes(np.arange(options.images))
    right = match_counts(Counts.of(y, answer.category)).to_classes(answer.category) == y
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.images:,} images: {seconds:.0f} s, {memory:,.0f} MB at most, {right.mean():.1%} right")


if __name__ == "__main__":
    main()
