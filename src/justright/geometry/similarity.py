"""Cosines between centroids and images, and their minimum, maximum or quantile per centroid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from justright.geometry.rows import CHUNK_ROWS, row_chunks, row_norms, unit_rows
from justright.utils.parallel import in_threads, n_cores
from justright.utils.types import Array

MAX_CHUNK_COSINES = 8_192_000  # 33 MB in single precision: large enough for a fast product, however many classes
N_HISTOGRAM_BINS = 8192
MAX_EXACT_COSINES = 64_000_000  # 256 MB in single precision


def cosine_similarity(
    centroids: Float[Array, "classes dim"], features: Float[Array, "images dim"]
) -> Float[Array, "classes images"]:
    """cos(h_c, f(x)) = h_c . f(x) / (|h_c| |f(x)|), for every pair: classes x images numbers."""
    return np.concatenate(list(cosine_chunks(centroids, features)), axis=1)


def farthest_similarity(
    centroids: Float[Array, "classes dim"], target: Float[Array, "target dim"]
) -> Float[Array, " classes"]:
    """The cosine of each centroid to the target image farthest from it. Eq. 12.

    gamma_c = min_{x in D^u} cos(h_c, f(x))
    """
    minima = np.min([chunk.min(axis=1) for chunk in cosine_chunks(centroids, target)], axis=0)
    return np.clip(minima.astype(np.float64), -1.0, 1.0)


def nearest_similarity(
    centroids: Float[Array, "classes dim"], target: Float[Array, "target dim"]
) -> Float[Array, " classes"]:
    """The cosine of each centroid to the target image nearest to it ("max" of Tab. A3)."""
    maxima = np.max([chunk.max(axis=1) for chunk in cosine_chunks(centroids, target)], axis=0)
    return np.clip(maxima.astype(np.float64), -1.0, 1.0)


def _quantile(row: Float[Array, " columns"], quantile: float) -> float:
    """The empirical quantile of one row, which is partitioned in place; 0.5 is the "median" of Tab. A3.

    The smallest value with at least a share q of the row at or below it; where a value meets the share exactly, its
    mean with the next one. So q = 0.5 is the usual median, and repeating every column changes nothing, unlike with
    interpolation between order statistics. As `np.quantile(row, q, method="averaged_inverted_cdf")`, but faster.
    """
    share = quantile * len(row)
    low, high = max(math.ceil(share) - 1, 0), min(math.floor(share), len(row) - 1)
    row.partition(high)  # at one place only: numpy vectorizes that
    upper = float(row[high])
    return upper if low == high else (float(row[:high].max()) + upper) / 2


def cosine_chunks(
    centroids: Float[Array, "classes dim"], features: Float[Array, "images dim"]
) -> Iterator[Float[Array, "classes chunk"]]:
    """The columns of `cosine_similarity`, some thousands at a time, in the precision of the features."""
    unit = unit_rows(centroids)
    for rows in row_chunks(features, min(CHUNK_ROWS, max(1, MAX_CHUNK_COSINES // len(unit)))):
        cosines = unit.astype(rows.dtype, copy=False) @ rows.T
        # Dividing the product in place avoids a normalized copy of the features.
        cosines /= row_norms(rows)
        yield cosines


@dataclass(repr=False, eq=False)
class CosineQuantile:
    """A quantile of the cosines of each centroid, over target images that arrive in batches.

    Exact up to `max_exact` cosines (classes x target images), which are kept. Beyond that they are counted in a
    histogram over [-1, 1] per centroid: memory stops growing, and the result is within 1 / `n_bins` of the exact one
    (half the width of a bin; 0.00012 by default).
    """

    centroids: Float[Array, "classes dim"]
    quantile: float = 0.5
    n_bins: int = N_HISTOGRAM_BINS
    max_exact: int = MAX_EXACT_COSINES
    n_images: int = field(default=0, init=False)
    _kept: list[Float[Array, "classes _"]] = field(default_factory=list, init=False)
    _counts: Int[Array, "classes bins"] | None = field(default=None, init=False)

    def update(self, target: Float[Array, "target dim"]) -> CosineQuantile:
        """Add a batch of target images."""
        for cosines in cosine_chunks(self.centroids, target):
            self._add(cosines)
        return self

    def merge(self, other: CosineQuantile) -> CosineQuantile:
        """Add the images of another accumulator with the same centroids, quantile and bins."""
        for cosines in other._kept:
            self._add(cosines)
        if other._counts is not None:
            counts = self._count_kept()
            counts += other._counts
            self.n_images += other.n_images
        return self

    def similarity(self) -> Float[Array, " classes"]:
        """The quantile of each centroid over all batches."""
        if self._counts is None:

            def quantile_of(place: int) -> float:
                return _quantile(np.concatenate([cosines[place] for cosines in self._kept]), self.quantile)

            quantiles = in_threads(quantile_of, range(len(self.centroids)), n_cores())
            return np.clip(list(quantiles), -1.0, 1.0)
        below = self._counts.cumsum(axis=1)  # cosines up to the end of each bin
        share = self.quantile * self.n_images
        # As in `_quantile`: the first bin that reaches the share, averaged with the next occupied bin where a bin
        # meets the share exactly.
        low, high = (below < share).sum(axis=1), (below <= share).sum(axis=1)
        if share == 0:
            low = high  # nothing lies below the smallest cosine
        elif share >= self.n_images:
            high = low  # nor above the largest
        return (low + high + 1) / self.n_bins - 1.0

    def _add(self, cosines: Float[Array, "classes chunk"]) -> None:
        self.n_images += cosines.shape[1]
        self._kept.append(cosines)
        if self._counts is not None or self.n_images * len(self.centroids) > self.max_exact:
            self._count_kept()

    def _count_kept(self) -> Int[Array, "classes bins"]:
        """Move the kept cosines into the histogram and return it."""
        if self._counts is None:
            self._counts = np.zeros((len(self.centroids), self.n_bins), dtype=np.int64)
        for cosines in self._kept:
            bins = np.clip((cosines + 1.0) * (self.n_bins / 2), 0, self.n_bins - 1).astype(np.int64)
            for row, of_class in zip(self._counts, bins, strict=True):
                row += np.bincount(of_class, minlength=self.n_bins)
        self._kept = []
        return self._counts
