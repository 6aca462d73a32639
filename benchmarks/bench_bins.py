"""Bins with 2,000 pool classes and 1,000 target clusters, 10 splits.

Run: PYTHONPATH=src python benchmarks/bench_bins.py
Clusters are given, so that k-means, which is not ours, stays out. The ratio compares the whole fit with the ten
transport problems alone.
"""

from __future__ import annotations

import numpy as np
from measuring import load, options, timed

from justright.geometry.transport import euclidean_distance, flow
from justright.selection import BinsSelector


def main() -> None:
    args = options(__doc__, classes=2_000, clusters=1_000, dim=768, splits=10)
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(args.classes), 20)
    clusters = np.repeat(np.arange(args.clusters), 40)
    # Classes at all distances from the target, so that some are discarded.
    spread = rng.uniform(0.2, 2.0, (args.classes, 1))
    places, centers = rng.normal(size=(args.classes, args.dim)) * spread, rng.normal(size=(args.clusters, args.dim))
    pool = (places[labels] + 5 + rng.normal(size=(len(labels), args.dim))).astype(np.float32)
    target = (centers[clusters] + 5 + rng.normal(size=(len(clusters), args.dim))).astype(np.float32)
    flow(np.ones((2, 2)))  # loads POT
    print(f"{args.classes} classes, {args.clusters} clusters, {args.splits} splits; {load()}")

    half = args.clusters // 2
    distance = euclidean_distance(np.concatenate([places, centers[:half]]), centers[half:])
    bare = timed(lambda: flow(distance), args.splits).clock
    ours, _, selector = timed(lambda: BinsSelector(n_splits=args.splits).fit(pool, labels, target, clusters))
    print(
        f"{args.splits} transport problems {bare:.2f} s, BinsSelector.fit {ours:.2f} s, ratio {ours / bare:.2f}; "
        f"{int((selector.bin_ > 0).sum())} classes survive, {len(selector.selected_classes_)} kept"
    )


if __name__ == "__main__":
    main()
