"""k-means++: the first centroids of clusters without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.clustering.arrays import Centroids, Rows, RowScores, like, row_blocks, squared_norms
from justright.utils.types import Array
from justright.utils.validation import to_numpy


class SeedingOrder:
    """Rows drawn one after the other, each with probability proportional to its squared distance from all before it.

        p(i) ~ min_c ||x_i - c||^2    over the given centroids and the rows drawn so far

    (Arthur and Vassilvitskii, 2007.) Without given centroids the first row is uniform. With several candidates per
    step the one that leaves the least distance in total is taken:

        argmin_c  sum_i min(d_i, ||x_i - c||^2)

    All restarts draw their next row together, with one product per step for the new rows alone. One order serves every
    K, since the first rows do not depend on how many follow; it grows as needed.
    """

    def __init__(self, x: Rows, given: Centroids, restarts: Sequence[np.random.Generator], n_candidates: int = 1):
        xp = array_namespace(x)
        self.x, self.norms = x, squared_norms(x)
        self.restarts, self.n_candidates = restarts, n_candidates
        self.has_centroid = given.shape[0] > 0
        nearest = xp.full((x.shape[0],), xp.inf, dtype=x.dtype, device=x.device)
        for rows in row_blocks(x.shape[0], given.shape[0]) if self.has_centroid else ():
            nearest[rows] = xp.min(_distances(x[rows, :], self.norms[rows], given), axis=1)
        self.distance = xp.stack([nearest] * len(restarts))  # (restarts, rows)
        self.picks: list[Int[Array, " restarts"]] = []

    def prefix(self, n: int) -> Int[Array, "restarts prefix"]:
        """The first n rows of each restart's order; fewer if there are fewer distinct rows."""
        xp = array_namespace(self.x)
        while len(self.picks) < n and bool(xp.all(xp.any(self.distance > 0, axis=1))):
            self._step()
        return np.array(self.picks[:n], dtype=np.int64).reshape(-1, len(self.restarts)).T

    def _step(self) -> None:
        xp = array_namespace(self.x)
        n_restarts, n_candidates = len(self.restarts), self.n_candidates
        weight = self.distance if self.has_centroid or self.picks else xp.ones_like(self.distance)
        uniform = np.stack([restart.random(n_candidates) for restart in self.restarts])
        candidates = _draw(weight, uniform)
        column = _distances(self.x, self.norms, xp.take(self.x, like(candidates.ravel(), self.x), axis=0)).T
        left = xp.minimum(self.distance[:, None, :], xp.reshape(column, (n_restarts, n_candidates, -1)))
        restart = np.arange(n_restarts)
        best = to_numpy(xp.argmin(xp.sum(left, axis=2, dtype=xp.float64), axis=1)) if n_candidates > 1 else 0 * restart
        self.picks.append(candidates[restart, best])
        self.distance = left[like(restart, left), like(best, left), :]


def _distances(x: Rows, norms: RowScores, centroids: Centroids) -> Float[Any, "rows clusters"]:
    """||x_i - c||^2, exactly 0 where the two are equal up to rounding."""
    xp = array_namespace(x)
    scale = norms[:, None] + squared_norms(centroids)[None, :]
    distance = scale - 2 * (x @ centroids.T)
    # Rounding leaves about eps * scale between duplicates; with that as a weight, a duplicate could be drawn.
    tiny = 32 * xp.finfo(x.dtype).eps
    return xp.where(distance > tiny * scale, distance, xp.zeros_like(distance))


def _draw(weight: Float[Any, "restarts rows"], uniform: Float[Array, "restarts _"]) -> Int[Array, "restarts _"]:
    """The first row at which the running sum of a restart's weights passes uniform * total."""
    xp = array_namespace(weight)
    running = xp.cumulative_sum(weight, axis=1, dtype=xp.float64)
    target = like(uniform, weight) * running[:, -1:]
    passed = [to_numpy(xp.searchsorted(running[r, :], target[r, :], side="right")) for r in range(len(uniform))]
    return np.minimum(np.stack(passed), weight.shape[1] - 1)
