"""Quantiles of cosines that stream over the target and merge."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from justright.geometry.similarity import cosine_chunks, row_quantile
from justright.types import Array

N_HISTOGRAM_BINS = 8192
MAX_EXACT_COSINES = 64_000_000  # 256 MB in single precision


class CosineQuantile:
    """A quantile of the cosines of each centroid.

    Exact while all classes x target cosines number at most `max_exact`: they are kept. Beyond, they fold into a
    histogram over [-1, 1] per centroid, memory stops growing, and the answer is within 1 / `n_bins` of the exact one
    (half the width of a bin; 0.00012 by default).
    """

    def __init__(
        self,
        centroids: Float[Array, "classes dim"],
        quantile: float = 0.5,
        *,
        n_bins: int = N_HISTOGRAM_BINS,
        max_exact: int = MAX_EXACT_COSINES,
    ):
        self.centroids = centroids
        self.quantile = quantile
        self.n_bins = n_bins
        self.max_exact = max_exact
        self.n_images = 0
        self._kept: list[Float[Array, "classes _"]] = []
        self._counts: Int[Array, "classes bins"] | None = None

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
            self._fold()
            assert self._counts is not None
            self._counts += other._counts
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
        if self._counts is None:
            self._kept.append(cosines)
            if self.n_images * len(self.centroids) > self.max_exact:
                self._fold()
            return
        self._count(cosines)

    def _fold(self) -> None:
        if self._counts is None:
            self._counts = np.zeros((len(self.centroids), self.n_bins), dtype=np.int64)
            for cosines in self._kept:
                self._count(cosines)
            self._kept = []

    def _count(self, cosines: Float[Array, "classes chunk"]) -> None:
        assert self._counts is not None
        bins = np.clip((cosines + 1.0) * (self.n_bins / 2), 0, self.n_bins - 1).astype(np.int64)
        for row, of_class in zip(self._counts, bins, strict=True):
            row += np.bincount(of_class, minlength=self.n_bins)
