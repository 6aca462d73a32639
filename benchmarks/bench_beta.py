"""Beta over 50,000 pool and 50,000 target images, 768-d, 1,000 classes, against the matrix product it needs.

Run: PYTHONPATH=src python benchmarks/bench_beta.py
Both alternate in one process. Goal: a ratio below 1.5 for "min" and less than 2 GB of memory. "median" also sorts 50
million cosines.
"""

from __future__ import annotations

import numpy as np
from measuring import in_turns, load, options, peak_mb

from justright.selection import BetaSelector


def main() -> None:
    args = options(__doc__, images=50_000, classes=1_000, dim=768, rounds=15)
    rng = np.random.default_rng(0)
    origin = rng.normal(size=args.dim).astype(np.float32)
    pool = rng.standard_normal((args.images, args.dim), dtype=np.float32) + origin
    target = rng.standard_normal((args.images, args.dim), dtype=np.float32) + origin
    labels = rng.integers(0, args.classes, args.images)
    centroids = pool[: args.classes].copy()
    product = np.empty((args.classes, args.images), dtype=np.float32)
    print(f"{args.images} x {args.images} images, {args.dim}-d, {args.classes} classes; {load()}")

    # Memory first: afterwards the bare product's own result would be counted.
    before = peak_mb() / 1024
    BetaSelector().fit(pool, labels, target)
    print(f"memory: {before:.2f} GB with the features, {peak_mb() / 1024:.2f} GB at the peak of fit")

    for reduction in ("min", "median"):
        selector = BetaSelector(reduction=reduction)
        calls = {
            "bare": lambda: np.matmul(centroids, target.T, out=product),
            "ours": lambda selector=selector: selector.fit(pool, labels, target),
        }
        timings = in_turns(calls, args.rounds if reduction == "min" else 3)
        bare, ours = ([each.wall for each in timings[name]] for name in calls)
        print(
            f"{reduction}: bare product {min(bare):.3f} s, BetaSelector.fit {min(ours):.3f} s, "
            f"ratio {min(ours) / min(bare):.2f} of the best, {np.median(np.divide(ours, bare)):.2f} in the median round"
        )


if __name__ == "__main__":
    main()
