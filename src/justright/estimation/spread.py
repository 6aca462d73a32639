"""The number of clusters that are as tight as labeled classes, from one tree of merges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from statistics import NormalDist
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.clustering.ward import ward_merges
from justright.estimation.base import CategoryCounter, Curve, Given, middle_interval
from justright.utils.context import track
from justright.utils.seeding import generator
from justright.utils.settings import at_least, setting
from justright.utils.types import UNLABELED, Array
from justright.utils.validation import check_level

_STEP = 0.1  # a drop of the log spread by one more cluster that counts as a step
_N_POINTS = 60  # of the curve
AROUND = 1.25  # the slope is measured from K / 1.25 to 1.25 K
# Position of classes between the log spread of all images (0) and that of nearest neighbors (1), the median over
# problems of known K; and its error, as such a position and as a factor of K, at 90 % (docs/research/categories.md)
USUAL_WAY, WAY_ERROR, FACTOR = 0.55, 0.12, 1.8


class WardTree:
    """Clusters of images from single ones upward (`ward_merges`): one tree has the clusters for every K."""

    def __init__(self, x: Float[Array, "images axes"]):
        self.x = x.astype(np.float64)
        self.merges = ward_merges(self.x)

    def spread(self, is_measured: Bool[Array, " images"] | None = None) -> Float[Array, " images"]:
        """The spread of measured images in K clusters of all images, for K = 1, 2, ... up to every image its own.

            spread(K) = n / (n - K) * mean over measured i of ||x_i - c_i||^2

        with c_i the mean of the cluster of i, and n all images. The factor corrects for means that are computed from
        the images themselves, so that clusters of few and of many images compare. By default all images are measured.
        """
        x, n = self.x, len(self.x)
        measured = np.ones(n, dtype=bool) if is_measured is None else is_measured
        n_nodes = 2 * n - 1  # single images, then the clusters in the order in which they are merged

        def of_nodes(of_images: Array) -> Array:
            nodes = np.zeros((n_nodes, *of_images.shape[1:]))
            nodes[:n] = of_images
            return nodes

        size, total = of_nodes(np.ones(n)), of_nodes(x)  # images of each cluster, and their sum
        # of the measured ones the number, the sum and the squared lengths
        count, part = of_nodes(measured), of_nodes(x * measured[:, None])
        square = of_nodes((x**2).sum(axis=1) * measured)
        around = np.zeros(n_nodes)  # squared distances of measured images to the mean of their cluster
        sums = np.zeros(n)  # the same over all clusters, after each merge
        for step, (a, b) in enumerate(self.merges):
            new = n + step
            for of_cluster in (size, total, count, part, square):
                of_cluster[new] = of_cluster[a] + of_cluster[b]
            mean = total[new] / size[new]
            around[new] = max(square[new] - 2 * part[new] @ mean + count[new] * (mean @ mean), 0.0)
            sums[step + 1] = sums[step] + around[new] - around[a] - around[b]
        sums[sums < 1e-12 * sums[-1]] = 0.0  # rounding errors of duplicates
        k = np.arange(1, n + 1)
        return sums[::-1] / max(int(measured.sum()), 1) * n / np.maximum(n - k, 1)


def way_to_neighbors(x: Float[Array, "images axes"], of_all: float) -> float:
    """log(spread of all images / spread of nearest neighbors).

    The latter is half of the mean squared distance of an image to its nearest one.
    """
    from sklearn.neighbors import NearestNeighbors  # slow to import

    nearest, _ = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(x.astype(np.float64)).kneighbors()
    of_pairs = float((nearest**2).mean()) / 2
    return float(np.log(of_all / max(of_pairs, 1e-12 * of_all)))


def k_of_spread(spread: Float[Array, " images"], level: float) -> int:
    """The K whose spread is nearest to `level`, as a factor; the lowest one among equals.

    If classes are far apart the spread falls in steps up to the true K and hardly beyond, and a level that is slightly
    too low would be reached only at a much larger K: so a K right after a step, near the level, takes precedence.
    """
    lowest = np.minimum.accumulate(spread)
    if level <= 0 or lowest[0] <= 0:
        return int(np.argmin(lowest)) + 1
    log = np.log(np.maximum(lowest, 1e-12 * lowest[0]) / level)
    is_step = (np.diff(log, prepend=log[:1]) < -_STEP) & (np.abs(log) < _STEP)
    return int(np.flatnonzero(is_step)[-1] if is_step.any() else np.argmin(np.abs(log))) + 1


def slope_at(spread: Float[Array, " images"], k: int) -> float:
    """How fast the log of the spread falls with log K around this K; 0 if it does not fall or has fallen to 0."""
    low, high = max(int(k / AROUND), 1), min(math.ceil(k * AROUND), len(spread))
    if low == high or spread[high - 1] <= 0:
        return 0.0
    return float(np.log(spread[low - 1] / spread[high - 1]) / np.log(high / low))


@dataclass(repr=False, eq=False)
class SpreadCounter(CategoryCounter):
    """K by how tight clusters are: too few are wider than a class, too many are tighter.

    The labeled images alone are clustered into as many clusters as they have classes L, labels unseen. All images are
    clustered as finely as makes them lie as tightly as that, with the spread of `WardTree`:

        K  with  spread(K clusters of all images)  =  spread(L clusters of the labeled images alone)

    The left side is the geometric mean of two: the spread of labeled images, which are of the same classes as the right
    side, and that of all images, since labeled ones do not change when two new classes share a cluster.

    A pool's classes are of other kinds, and wider or narrower. The clusters of the target then have the position of
    those of the pool between the log spread of all images and that of nearest neighbors. Without labels they have the
    usual position of classes, which is uncertain: the interval is wide.

    slope_: after `fit`, how fast the log spread falls with log K, from K / 1.25 to 1.25 K.
    """

    curve_axes: ClassVar[tuple[str, str]] = ("K", "spread of clusters")

    n_axes: int = setting(128, "maximum number of principal axes", at_least(1, Integral))
    max_images: int = setting(
        6000, "maximum number of images, drawn at random: a tree needs all pairs", at_least(2, Integral)
    )

    def _count(self, given: Given) -> tuple[int, Curve]:
        """Build two trees of clusters: of the labeled images, and of all images that are counted."""
        if given.is_labeled.any():
            given.require_classes(1, advice="label a second image of a class, or give the number of categories (--k)")
        z = given.axes(self.n_axes)
        kept = np.sort(generator(self.seed, "images").permutation(len(z))[: self.max_images])
        self._fewest = 1 if given.has_pool else max(given.n_classes, 1)
        self._z, self._labels, self._has_pool = z[kept], given.labels[kept], given.has_pool
        self._classes = np.unique(self._labels[self._labels != UNLABELED])
        for _ in track(range(1), 1, "trees of clusters"):
            self._tree = WardTree(z[kept[kept < given.n_counted]])
            n_categories, spread = self._estimate(self._classes)
        self.slope_ = slope_at(spread, n_categories)
        k = np.unique(np.geomspace(1, min(3 * n_categories, len(spread)), _N_POINTS).round().astype(np.int64))
        return n_categories, np.stack([k.astype(np.float64), spread[k - 1]], axis=1)

    def interval(self, level: float = 0.9, n_resamples: int = 10) -> tuple[int, int]:
        """The K for other labeled classes: half of them each time, drawn without replacement.

        Without labels: the error of estimates on other problems, the wider of two measures to each side.
        """
        if not len(self._classes):
            scale = NormalDist().inv_cdf((1 + check_level(level)) / 2) / NormalDist().inv_cdf(0.95)
            spread, factor = self._tree.spread(), FACTOR**scale
            low = min(self._at(USUAL_WAY - WAY_ERROR * scale, spread), math.floor(self.n_categories_ / factor))
            high = max(self._at(USUAL_WAY + WAY_ERROR * scale, spread), math.ceil(self.n_categories_ * factor))
            return max(low, 1), min(high, len(spread))
        estimates = []
        n_drawn = math.ceil(len(self._classes) / 2)
        for resample in track(range(n_resamples), n_resamples, "resamples"):
            drawn = generator(self.seed, "interval", resample).permutation(self._classes)[:n_drawn]
            estimates.append(self._estimate(drawn)[0])
        return middle_interval(estimates, level, holding=self.n_categories_)

    def _estimate(self, classes: Int[Array, " classes"]) -> tuple[int, Float[Array, " images"]]:
        """K for these labeled classes, and the spread of the counted images at every K."""
        spread = self._tree.spread()
        if not len(classes):
            return self._at(USUAL_WAY, spread), spread
        is_labeled = np.isin(self._labels, classes)
        labeled = self._z[is_labeled]
        among_labeled = WardTree(labeled).spread()
        level = float(among_labeled[len(classes) - 1])
        if not self._has_pool:
            measured = [np.minimum.accumulate(each) for each in (self._tree.spread(is_labeled), spread)]
            spread = np.sqrt(np.prod(measured, axis=0))
        elif min(spread[0], among_labeled[0], level) > 0:
            way = np.log(among_labeled[0] / level) / way_to_neighbors(labeled, among_labeled[0])
            return self._at(float(way), spread), spread
        return max(k_of_spread(spread, level), self._fewest), spread

    def _at(self, way: float, spread: Float[Array, " images"]) -> int:
        """The K at a position between the log spread of all images (0) and that of nearest neighbors (1)."""
        level = float(spread[0] * np.exp(-way * way_to_neighbors(self._tree.x, spread[0])))
        return max(k_of_spread(spread, level), self._fewest)
