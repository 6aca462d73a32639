"""Intervals for accuracies by the bootstrap, drawn from counts instead of images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.types import Array


@dataclass(frozen=True, eq=False)
class Tally:
    """Right and all images of each unit: a class, or a whole group of classes whose images count alike.

    Attributes:
        n_right, n_images: of each unit.
        is_member: [g, u] says whether unit u belongs to group g.
        averages_units: whether an accuracy is the mean over units (each counts once) or over images.
    """

    n_right: Int[Array, " units"]
    n_images: Int[Array, " units"]
    is_member: Bool[Array, "groups units"]
    averages_units: bool

    def accuracy(self) -> Float[Array, " groups"]:
        """The accuracy of each group, NaN for a group without images."""
        return self._accuracy(self.n_right, self.n_images)

    def intervals(self, rng: np.random.Generator, n_resamples: int, level: float) -> Float[Array, "groups 2"]:
        """Percentile intervals (Efron, 1979), one row (low, high) per group; NaN for a group without images.

        To draw M images anew from M images and count them is to draw the counts from a multinomial, so that a
        million images cost no more than a hundred. The matching is held fixed: each image stays right or wrong.
        """
        cells = np.concatenate([self.n_right, self.n_images - self.n_right])
        total = int(cells.sum())
        drawn = rng.multinomial(total, cells / total, size=n_resamples)
        right, wrong = np.split(drawn, 2, axis=1)
        accuracy = self._accuracy(right, right + wrong)
        tail = (1 - level) / 2
        bounds = np.full((len(self.is_member), 2), np.nan)
        for group, values in enumerate(accuracy.T):
            # a resample can miss a tiny group; it then has nothing to say about it
            seen = values[~np.isnan(values)]
            if len(seen):
                bounds[group] = np.quantile(seen, [tail, 1 - tail])
        return bounds

    def _accuracy(
        self, n_right: Int[Array, "*draws units"], n_images: Int[Array, "*draws units"]
    ) -> Float[Array, "*draws groups"]:
        weight = self.is_member.T.astype(float)
        if self.averages_units:
            return _ratio(_ratio(n_right, n_images, empty=0.0) @ weight, (n_images > 0) @ weight)
        return _ratio(n_right @ weight, n_images @ weight)


def _ratio(
    part: Int[Array, "*shape"] | Float[Array, "*shape"],
    whole: Int[Array, "*shape"] | Float[Array, "*shape"],
    empty: float = np.nan,
) -> Float[Array, "*shape"]:
    return np.divide(part, whole, out=np.full(part.shape, empty), where=whole > 0)
