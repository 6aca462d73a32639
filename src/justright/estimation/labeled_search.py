"""The number of clusters at which k-means agrees best with the given labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np
from jaxtyping import Int
from scipy.optimize import minimize_scalar

from justright.clustering import SemiSupKMeans
from justright.clustering.lloyd import SeedingOrder
from justright.estimation.base import CategoryCounter, Curve, Given, middle_interval
from justright.evaluation import Counts, match_counts
from justright.utils.context import track
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.settings import at_least, setting
from justright.utils.types import Array

_FEWEST_IMAGES = 5  # smallest average size of a category that the search considers by default
_N_WALK = 10  # steps from the best K to either side, as long as no K is worse
_N_MORE = 4  # searches from other seeds that the interval adds to that of the fit


@dataclass(repr=False, eq=False)
class LabeledSearchCounter(CategoryCounter):
    """K by the labeled images: too few clusters merge their classes, too many split them.

        argmax_K  ACC(labeled images; k-means with K clusters on all images, labels unseen)

    as in GCD (Vaze et al., CVPR 2022): bounded Brent search between the number of labeled classes and `max_k`, on
    integers, each clustered once, then a walk over neighbors that are as good. The result is the best K of all that
    were tried. There is one seeding order, and every K uses a prefix of it, so neighboring K differ less by chance.

    `max_k` None means a fifth of the unlabeled images, and at least twice the labeled classes. Never above the
    distinct images. The curve has each K that was tried, ascending.
    """

    curve_axes: ClassVar[tuple[str, str]] = ("K", "accuracy on labeled images")

    max_k: int | None = setting(None, "the largest K considered", at_least(1, Integral).or_none())
    max_iter: int = setting(100, "maximum number of k-means iterations per K", at_least(1, Integral))
    n_candidates: int = setting(8, "rows tried per seeding step; the best one is taken", at_least(1, Integral))

    def _count(self, given: Given) -> tuple[int, Curve]:
        """Search K. Progress counts against the largest possible number of clusterings."""
        if given.has_pool or not given.is_labeled.any():
            raise DegenerateError(
                "No image is labeled." if not given.has_pool else "A pool, and no labeled image of the target itself.",
                expected="labeled images of classes in the target, to measure the accuracy of each K",
                advice="CombinedCounter, which can count a target with a pool of other kinds",
            )
        self._x, self._is_labeled, self._class = given.x, given.is_labeled, given.labels[given.is_labeled]
        self._counts = self._search(self.seed)
        accuracy = {k: match_counts(counts).accuracy for k, counts in self._counts.items()}
        return _best(accuracy), np.array(sorted(accuracy.items()), dtype=np.float64)

    def interval(self, level: float = 0.9, n_resamples: int = 100) -> tuple[int, int]:
        """The K for resampled labeled classes and other seeds.

        Classes are drawn with replacement. The clusterings do not use labels, so those of one search serve every draw;
        a few searches from other seeds are added, since k-means depends on chance too.
        """
        seeds = track(range(self.seed + 1, self.seed + 1 + _N_MORE), _N_MORE, "searches")
        searches = [self._counts, *(self._search(seed) for seed in seeds)]
        classes, estimates = np.unique(self._class), []
        for resample in range(n_resamples):
            drawn = generator(self.seed, "interval", resample).integers(len(classes), size=len(classes))
            times = np.bincount(drawn, minlength=len(classes))
            search = searches[resample % len(searches)]
            estimates.append(_best({k: match_counts(_repeat(c, classes, times)).accuracy for k, c in search.items()}))
        return middle_interval(estimates, level, holding=self.n_categories_)

    def _search(self, seed: int) -> dict[int, Counts]:
        """All K that the search tried, and the counts of labeled images by class and cluster."""
        x, n_classes = self._x, len(np.unique(self._class))
        n_unlabeled = x.shape[0] - len(self._class)
        max_k = max(n_unlabeled // _FEWEST_IMAGES, 2 * n_classes) if self.max_k is None else self.max_k
        low, high = n_classes, min(max_k, x.shape[0])
        order = SeedingOrder(x, x[:0, :], [generator(seed, "k-means++")], self.n_candidates)
        n_distinct = order.prefix(low).shape[1]
        if min(high, n_distinct) < low:
            raise DegenerateError(
                f"At most {min(high, n_distinct)} clusters for {low} labeled classes.",
                expected="max_k and the number of distinct images at least the number of labeled classes",
            )

        def count(n_clusters: int) -> tuple[int, Counts]:
            start = order.prefix(n_clusters)[0]
            kmeans = SemiSupKMeans(len(start), init=x[start], max_iter=self.max_iter, normalize=False)
            return len(start), Counts.of(self._class, kmeans.fit(x).labels_[self._is_labeled])

        return _brent(count, low, high)


def _best(accuracy: dict[int, float]) -> int:
    """The K of highest accuracy; among equals the one nearest to the middle between the lowest and the highest.

    Labeled images do not change when new classes are merged or split, so the best K is often a range.
    """
    best = max(accuracy.values())
    equals = sorted(k for k in accuracy if accuracy[k] == best)
    return min(equals, key=lambda k: abs(2 * k - equals[0] - equals[-1]))


def _brent(count: Callable[[int], tuple[int, Counts]], low: int, high: int) -> dict[int, Counts]:
    """Bounded Brent search over the integers low..high for the best accuracy; the counts of all K tried."""
    # Golden sections alone would end at one integer within this many steps; parabolas need fewer.
    n_steps = 3 + math.ceil(math.log(max(high - low, 1), (1 + math.sqrt(5)) / 2))
    steps = track(range(n_steps + 2 * _N_WALK), n_steps + 2 * _N_WALK, "clusterings")
    tried: dict[int, Counts] = {}
    accuracy: dict[int, float] = {}

    def error(k: float) -> float:
        rounded = round(k)
        if rounded not in accuracy:
            next(steps, None)
            n_clusters, counts = count(rounded)
            tried[n_clusters] = counts
            accuracy[rounded] = match_counts(counts).accuracy
        return -accuracy[rounded]

    minimize_scalar(error, bounds=(low, high), method="bounded", options={"xatol": 1.0, "maxiter": n_steps})
    # Brent stops anywhere on a plateau: walk to its end.
    for direction in (-1, 1):
        k = _best(accuracy)
        for _ in range(_N_WALK):
            k += direction
            if not low <= k <= high or -error(float(k)) < max(accuracy.values()):
                break
    return tried


def _repeat(counts: Counts, classes: Int[Array, " classes"], times: Int[Array, " classes"]) -> Counts:
    """The counts with the images of each class repeated that many times, without empty pairs."""
    n = counts.n * times[np.searchsorted(classes, counts.class_)]
    return Counts(counts.cluster[n > 0], counts.class_[n > 0], n[n > 0])
