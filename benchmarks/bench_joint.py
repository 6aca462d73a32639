"""The joint answer for a million random feature vectors: seconds, memory and accuracy.

    python benchmarks/bench_joint.py --images 1000000

Vectors are drawn when they are read, so that memory is that of the answer alone.
"""

from __future__ import annotations

import numpy as np
from measuring import options, peak_mb, timed

from justright.discovery.joint import Inputs, joint_answer, probabilities
from justright.evaluation import Counts, match_counts

N_CATEGORIES, N_KNOWN, DIM, PER_CLASS = 200, 80, 128, 20


def main() -> None:
    # noise: spread within a category, as a multiple of the spread of their centers
    args = options(__doc__, images=1_000_000, noise=1.6)
    centers = np.random.default_rng(0).normal(size=(N_CATEGORIES, DIM)).astype(np.float32)

    def inputs(y: np.ndarray, seed: int) -> Inputs:
        rng = np.random.default_rng(seed)
        frozen, tuned = (centers[y] + args.noise * rng.normal(size=(len(y), DIM)).astype(np.float32) for _ in range(2))
        return Inputs(frozen, [tuned], [probabilities(tuned @ centers.T / DIM, 0.1)])

    def classes(rows: np.ndarray) -> np.ndarray:
        return rows * 7919 % N_CATEGORIES

    def target_at(rows: np.ndarray) -> Inputs:
        return inputs(classes(rows), int(rows[0]))

    labels = np.repeat(np.arange(N_KNOWN), PER_CLASS)
    labeled, given = inputs(labels, 1), np.full(args.images, -1)
    seconds, _, joint = timed(lambda: joint_answer(labeled, labels, target_at, given, N_CATEGORIES, 0.1))
    accuracy = match_counts(Counts.of(classes(np.arange(args.images)), joint[1].category)).accuracy
    print(f"{args.images:,} images: {seconds:.0f} s, {peak_mb():,.0f} MB at most, {accuracy:.1%} right")


if __name__ == "__main__":
    main()
