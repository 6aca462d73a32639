"""Quantiles of cosines that stream over the target and merge."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from justright.geometry.similarity import cosine_chunks, row_quantile
from justright.utils.types import Array

N_HISTOGRAM_BINS = 8192
MAX_EXACT_COSINES = 64_000_000  # 256 MB in single precision


@dataclass(repr=False, eq=False)
class CosineQuantile:
    """A quantile of the cosines of each centroid.

    Exact while all classes x target cosines number at most `max_exact`: they are kept. Beyond, they fold into a
    histogram over [-1, 1] per centroid, memory stops growing, and the answer is within 1 / `n_bins` of the exact one
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
        """Add what another accumulator with the same centroids, quantile and bins has seen."""
        for cosines in other._kept:
            self._add(cosines)
        if other._counts is not None:
            counts = self._count_kept()
            counts += other._counts
            self.n_images += other.n_images
        return self

    def similarity(self) -> Float[Array, " classes"]:
        """The quantile over all batches."""
        if self._counts is None:
            return row_quantile(np.concatenate(self._kept, axis=1), self.quantile)
        seen = self._counts.cumsum(axis=1)
        share = self.quantile * self.n_images
        # The histogram's own empirical quantile: the first bin that reaches the share, averaged with the next
        # occupied one where the share is met exactly.
        low, high = (seen < share).sum(axis=1), (seen <= share).sum(axis=1)
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
        """Move the cosines that are kept into the histogram, and give it."""
        if self._counts is None:
            self._counts = np.zeros((len(self.centroids), self.n_bins), dtype=np.int64)
        for cosines in self._kept:
            bins = np.clip((cosines + 1.0) * (self.n_bins / 2), 0, self.n_bins - 1).astype(np.int64)
            for row, of_class in zip(self._counts, bins, strict=True):
                row += np.bincount(of_class, minlength=self.n_bins)
        self._kept = []
        return self._counts
