"""Select with Beta from 2 million features in shards, 1 million each of pool and target, never all in memory.

Run: PYTHONPATH=src python benchmarks/bench_stream.py
Shards are generated when they are read, from one block of noise with another offset each, so that generating is cheap.
Memory should grow by less than 1 GB after the imports.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
from measuring import load, options, peak_mb, timed

from justright.selection import BetaSelector

SHARD_ROWS = 20_000


class Shards:
    """Features of `n_images` images, a shard at a time, the same at every reading."""

    def __init__(self, n_images: int, dim: int, n_classes: int, seed: int):
        self.n_images, self.dim, self.n_classes, self.seed = n_images, dim, n_classes, seed
        self.noise = np.random.default_rng(0).standard_normal((SHARD_ROWS, dim), dtype=np.float32)

    def features(self) -> Iterator[np.ndarray]:
        for _, features in self._parts():
            yield features

    def labeled(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for number, features in self._parts():
            labels = np.random.default_rng((self.seed, number)).integers(0, self.n_classes, len(features))
            yield features, labels

    def _parts(self) -> Iterator[tuple[int, np.ndarray]]:
        for number in range(self.n_images // SHARD_ROWS):
            shift = np.random.default_rng((self.seed, number, 1)).standard_normal(self.dim, dtype=np.float32)
            yield number, self.noise + (2 + 0.2 * shift)


def main() -> None:
    args = options(__doc__, images=1_000_000, dim=768, classes=1_000, reduction="min")
    before = peak_mb()
    pool = Shards(args.images, args.dim, args.classes, seed=1)
    target = Shards(args.images, args.dim, args.classes, seed=2)
    print(
        f"2 x {args.images} features, {args.dim}-d, {args.classes} classes, reduction {args.reduction}: "
        f"{2 * args.images * args.dim * 4 / 2**30:.1f} GB in shards of {SHARD_ROWS}; {load()}"
    )
    drawing = timed(lambda: [deque(each.features(), maxlen=0) for each in (pool, target)]).wall
    selector = BetaSelector(reduction=args.reduction)
    ours = timed(lambda: selector.fit_stream(pool.labeled(), target.features())).wall
    centroids, block = target.noise[: args.classes].copy(), target.noise
    bare = timed(lambda: centroids @ block.T, args.images // SHARD_ROWS).wall
    print(f"drawing {drawing:.1f} s, fit_stream with drawing {ours:.1f} s, bare products {bare:.1f} s")
    print(f"ratio of fit_stream without drawing to bare products {(ours - drawing) / bare:.2f}")
    print(f"memory: grew by {peak_mb() - before:.0f} MB to {peak_mb():.0f} MB")


if __name__ == "__main__":
    main()
