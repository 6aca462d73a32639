"""How tight clusters are at every K, from one tree of merges."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.cluster.hierarchy import linkage

from justright.types import Array

_BLOCK = 1024  # images whose distances to all others are held at a time

_STEP = 0.1  # of the logarithm: a cluster more lets the spread fall by a tenth


class WardTree:
    """Clusters of images from single ones upward: always the merge that adds least to the sum of squares.

    One tree has the clusters for every K. It looks at all pairs of images: 10,000 of them take a few hundred MB.
    """

    def __init__(self, x: Float[Array, "images axes"]):
        self.x = x.astype(np.float64)
        pairs = linkage(self.x, "ward")[:, :2] if len(x) > 1 else np.zeros((0, 2))
        self.merges = pairs.astype(np.int64)

    def spread(self, is_measured: Bool[Array, " images"] | None = None) -> Float[Array, " images"]:
        """The spread of measured images in K clusters of all images, for K = 1, 2, ... up to every image its own.

            spread(K) = n / (n - K) * mean over measured i of ||x_i - c_i||^2

        with c_i the mean of the cluster of i, and n all images. The factor makes up for means that are taken from the
        images themselves, so that clusters of few and of many images compare. By default all images are measured.
        """
        x, n = self.x, len(self.x)
        measured = np.ones(n, dtype=bool) if is_measured is None else is_measured
        # of each cluster: images, their sum, and of the measured ones the number, the sum and the squared lengths
        size, total = np.ones(2 * n - 1), np.zeros((2 * n - 1, x.shape[1]))
        count, part, square = np.zeros(2 * n - 1), np.zeros_like(total), np.zeros(2 * n - 1)
        total[:n], count[:n] = x, measured
        part[:n], square[:n] = x * measured[:, None], (x**2).sum(axis=1) * measured
        around, sums = np.zeros(2 * n - 1), np.zeros(n)  # squares of measured images around the mean of their cluster
        for step, (a, b) in enumerate(self.merges):
            new = n + step
            for of_cluster in (size, total, count, part, square):
                of_cluster[new] = of_cluster[a] + of_cluster[b]
            mean = total[new] / size[new]
            around[new] = max(square[new] - 2 * part[new] @ mean + count[new] * (mean @ mean), 0.0)
            sums[step + 1] = sums[step] + around[new] - around[a] - around[b]
        sums[sums < 1e-12 * sums[-1]] = 0.0  # what rounding leaves of duplicates
        k = np.arange(1, n + 1)
        return sums[::-1] / max(int(measured.sum()), 1) * n / np.maximum(n - k, 1)


def neighbor_spread(x: Float[Array, "images axes"]) -> float:
    """The spread of pairs of an image and its nearest one: half of their squared distance, on average."""
    x = x.astype(np.float64)
    norms, nearest = (x**2).sum(axis=1), np.zeros(len(x))
    for start in range(0, len(x), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(x)))
        distance = norms[rows, None] + norms - 2 * x[rows] @ x.T
        distance[np.arange(len(rows)), rows] = np.inf
        nearest[rows] = distance.min(axis=1)
    return float(np.maximum(nearest, 0.0).mean()) / 2


def k_of_spread(spread: Float[Array, " images"], level: float) -> int:
    """The K whose spread comes nearest to `level`, as a factor; the lowest one among equals.

    Where classes lie far apart the spread falls in steps up to the true K and hardly beyond, and a level that was
    measured a hair too low would be met far out on that plain: a K that a step leads down to, about to the level, is
    taken before it.
    """
    lowest = np.minimum.accumulate(spread)
    if level <= 0 or lowest[0] <= 0:
        return int(np.argmin(lowest)) + 1
    log = np.log(np.maximum(lowest, 1e-12 * lowest[0]) / level)
    is_step = (np.diff(log, prepend=log[:1]) < -_STEP) & (np.abs(log) < _STEP)
    return int(np.flatnonzero(is_step)[-1] if is_step.any() else np.argmin(np.abs(log))) + 1
