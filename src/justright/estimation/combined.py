"""One estimate from two counters, with an interval calibrated on problems of known K."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from statistics import NormalDist
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from justright.clustering.ward import MOST_ROWS, constrained_ward
from justright.estimation.base import CategoryCounter, Curve, Given
from justright.estimation.mixture import MixtureCounter
from justright.estimation.spread import SpreadCounter
from justright.geometry import unit_rows
from justright.geometry.rows import evenly_spaced
from justright.utils.settings import SHARE, at_least, setting
from justright.utils.types import UNLABELED, Array
from justright.utils.validation import check_level

# Fitted on simulated problems, as spread_share, and evaluated on others: docs/research/categories.md
ERROR, FEW_CLASSES, FEW_IMAGES, DISAGREEMENT = 0.12, 10, 10, 2
POOL_ERROR = 0.92
# Of the correction. In the fit, classes had 2 to 20 labeled images.
COEFFICIENTS = 0.0187, 0.0496, -0.0508
FEWEST_PER_CLASS, MOST_PER_CLASS, MOST_KNOWN, FADE, LEAST_SLOPE = 2, 20, 0.9, 0.3, 0.08


@dataclass(repr=False, eq=False)
class CombinedCounter(CategoryCounter):
    """The geometric mean of K by spread and K by split and merge.

        log K = share * log K(spread) + (1 - share) * log K(mixture) + correction

    never below the number of labeled classes. Both parts use principal axes, each divided by the root of its standard
    deviation, at length 1. Classes of many labeled images look wider than clusters of few images, hence the correction
    (`correction_terms`). Adding the search for the best accuracy on labeled images did not lower the error. With a pool
    of other kinds instead of own labels, with one labeled class or without labels, only the spread is used, along
    unscaled axes; without labels its interval is that of the spread.

    The interval is the error on simulated problems of known K, as a factor: it grows with fewer labeled classes L, with
    fewer of the n images per category, and with the disagreement d = |log K(spread) - log K(mixture)|.

        log K +- error * (1 + few classes / L + few images * K / n + disagreement * d)

    The curve is that of the spread; estimates_ is K by each part, correction_terms_ are those of the correction.
    """

    curve_axes: ClassVar[tuple[str, str]] = SpreadCounter.curve_axes
    is_interval_quick: ClassVar[bool] = True

    spread_share: float = setting(0.75, "weight of K by spread in log K", SHARE)
    n_axes: int = setting(128, "maximum number of principal axes", at_least(1, Integral))

    def _count(self, given: Given) -> tuple[int, Curve]:
        """Count by the spread, then split and merge from there."""
        z = given.axes(self.n_axes)
        has_classes = not given.has_pool and given.n_classes > 1
        if has_classes:  # clusters differ along many axes, not only along the first few
            z = unit_rows(z / np.sqrt(z.std(axis=0)))
        z = z.astype(np.float32)
        n = self._n_images = given.n_counted
        self._n_classes, self._has_pool = given.n_classes, given.has_pool
        counted, labels = z[:n], given.labels[:n]
        spread = self._spread = SpreadCounter(normalize=False, seed=self.seed)
        spread.fit(counted, labels, (z[n:], given.labels[n:]) if given.has_pool else None)
        self.estimates_ = {"spread": spread.n_categories_}
        log_k = math.log(spread.n_categories_)
        if has_classes:
            mixture = MixtureCounter(start=spread.n_categories_, n_init=1, normalize=False, seed=self.seed)
            self.estimates_["mixture"] = mixture.fit(counted, labels).n_categories_
            log_k += (1 - self.spread_share) * math.log(self.estimates_["mixture"] / spread.n_categories_)
            before = self._bounded(round(math.exp(log_k)))
            self.correction_terms_ = correction_terms(counted, labels, before, spread.slope_)
            log_k += sum(map(math.prod, zip(COEFFICIENTS, self.correction_terms_, strict=True)))
        return self._bounded(round(math.exp(log_k))), spread.curve_

    def interval(self, level: float = 0.9) -> tuple[int, int]:
        """K divided and multiplied by the error factor, which is scaled as a normal error for levels other than 0.9."""
        check_level(level)
        if not self._n_classes:
            return self._spread.interval(level)
        error = POOL_ERROR  # of log K, at 90 %
        if not self._has_pool:
            disagreement = math.log(max(self.estimates_.values()) / min(self.estimates_.values()))
            few = FEW_CLASSES / self._n_classes + FEW_IMAGES * self.n_categories_ / self._n_images
            error = ERROR * (1 + few + DISAGREEMENT * disagreement)
        factor = math.exp(error * NormalDist().inv_cdf((1 + level) / 2) / NormalDist().inv_cdf(0.95))
        low, high = math.floor(self.n_categories_ / factor), math.ceil(self.n_categories_ * factor)
        return self._bounded(low), self._bounded(high)

    def _bounded(self, k: int) -> int:
        return min(max(k, 1 if self._has_pool else self._n_classes, 1), self._n_images)


def correction_terms(
    z: Float[Array, "images axes"], labels: Int[Array, " images"], n_categories: int, slope: float
) -> tuple[float, float, float]:
    """What `COEFFICIENTS` are multiplied by and added up for the correction of log K.

        f / slope * (0.0187 log(labeled images of a class) + 0.0496 known share - 0.0508),   f = (0.9 - L / K) / 0.3

    K is `n_categories` before the correction, `slope` how fast the log spread falls with log K, and the known share
    that of the unlabeled images that `constrained_ward` puts into classes. f is clipped to [0, 1]: if nearly all
    categories are known, new ones cannot be missed.
    """
    n_classes, n_labeled = len(np.unique(labels[labels != UNLABELED])), int((labels != UNLABELED).sum())
    kept = evenly_spaced(len(z), min(len(z), MOST_ROWS))
    values, known = np.unique(labels[kept], return_inverse=True)
    known = known - int(values[0] == UNLABELED)
    cluster = constrained_ward(z[kept], known, n_categories).labels[known == UNLABELED]
    known_share = float(np.mean(cluster <= known.max())) if len(cluster) else 1.0
    per_class = min(max(n_labeled / n_classes, FEWEST_PER_CLASS), MOST_PER_CLASS)
    fade = min(max((MOST_KNOWN - n_classes / n_categories) / FADE, 0.0), 1.0)
    scale = fade / max(slope, LEAST_SLOPE)
    return scale * math.log(per_class), scale * known_share, scale
