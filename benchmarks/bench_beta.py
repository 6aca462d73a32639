"""Beta over 50,000 pool and 50,000 target images, 768-d, 1,000 classes, against the matrix product it needs.

Run: PYTHONPATH=src python benchmarks/bench_beta.py
Both sides in one process, alternating: the ratio for "min" is meant to stay below 1.5, memory below 2 GB. "median" also
has to sort 50 million cosines.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable

import numpy as np

from justright.selection import BetaSelector


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--images", type=int, default=50_000)
    options.add_argument("--classes", type=int, default=1_000)
    options.add_argument("--dim", type=int, default=768)
    options.add_argument("--rounds", type=int, default=15)
    args = options.parse_args()
    rng = np.random.default_rng(0)
    origin = rng.normal(size=args.dim).astype(np.float32)
    pool = rng.standard_normal((args.images, args.dim), dtype=np.float32) + origin
    target = rng.standard_normal((args.images, args.dim), dtype=np.float32) + origin
    labels = rng.integers(0, args.classes, args.images)
    centroids = pool[: args.classes].copy()
    product = np.empty((args.classes, args.images), dtype=np.float32)
    print(f"{args.images} x {args.images} images, {args.dim}-d, {args.classes} classes; load {os.getloadavg()[0]:.1f}")

    # Memory first: afterwards the bare product's own result would be counted.
    before = peak_gb()
    BetaSelector().fit(pool, labels, target)
    print(f"memory: {before:.2f} GB with the features, {peak_gb():.2f} GB at the peak of fit")

    for reduction in ("min", "median"):
        bare, ours = [], []
        for _ in range(args.rounds if reduction == "min" else 3):
            bare.append(seconds(lambda: np.matmul(centroids, target.T, out=product)))
            selector = BetaSelector(reduction=reduction)
            ours.append(seconds(lambda: selector.fit(pool, labels, target)))  # noqa: B023
        print(
            f"{reduction}: bare product {min(bare):.3f} s, BetaSelector.fit {min(ours):.3f} s, "
            f"ratio {min(ours) / min(bare):.2f} of the best, {np.median(np.divide(ours, bare)):.2f} in the median round"
        )


if __name__ == "__main__":
    main()
