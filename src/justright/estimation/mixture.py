"""The number of Gaussians that explains the features best, by splitting and merging clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Int

from justright.clustering import SemiSupKMeans
from justright.estimation.base import CategoryCounter, Curve, Given, middle_interval
from justright.estimation.prior import gpc_prior, labeled_prior
from justright.estimation.split_merge import SplitMerge
from justright.utils.context import track
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.settings import SHARE, YES_OR_NO, at_least, one_of, setting
from justright.utils.types import UNLABELED, Array

_STABLE_ROUNDS = 3
_KEPT = 0.8  # the share of images that a resample of the interval keeps


@dataclass(repr=False, eq=False)
class MixtureCounter(CategoryCounter):
    """K by split and merge: a cluster is torn where two Gaussians explain it better than one, and the reverse.

    After GPC (Zhao et al., ICCV 2023). Each round clusters the images with the labels kept, then asks of every
    cluster whether to split it and of near pairs whether to merge them, by the marginal likelihood under a
    normal-inverse-Wishart prior. The clusters are fed back until K holds for three rounds.

    The `prior` "labeled" learns from the labeled classes how wide and how far apart classes are; "gpc" takes the
    published constants, which suit unit features of a few dozen images per class. With `use_labeled` clusters of
    labeled classes take part: a new class hidden in one splits off, a piece of one is merged back. GPC leaves them
    alone, and then finds no more than k-means set free. The curve holds the K before each round and the last one.
    """

    curve_axes: ClassVar[tuple[str, str]] = ("round", "K")

    prior: Literal["labeled", "gpc"] = setting(
        "labeled", "what clusters look like: labeled classes, or GPC's constants", one_of("labeled", "gpc")
    )
    n_axes: int = setting(128, "principal axes kept, at most", at_least(1, Integral))
    start: int | None = setting(None, "the first K; 1.5 times the labeled classes", at_least(1, Integral).or_none())
    max_rounds: int = setting(50, "most rounds of splits and merges", at_least(1, Integral))
    accept_worse: float = setting(0.0, "how often a split or merge is taken against the odds; GPC has 0.1", SHARE)
    use_labeled: bool = setting(True, "whether clusters of labeled classes may be split and merged too", YES_OR_NO)
    n_init: int = setting(10, "k-means restarts of the first round; later ones go on from there", at_least(1, Integral))

    def _count(self, given: Given) -> tuple[int, Curve]:
        """Split and merge until K is stable; progress counts against the largest number of rounds.

        Of a pool only the prior is learned: how wide its classes are, and how far apart.
        """
        z = given.axes(self.n_axes)
        if self.prior == "gpc":
            self._niw = gpc_prior(z)
        else:
            given.require_classes(2, advice='MixtureCounter(prior="gpc")')
            z, self._niw = labeled_prior(z, given.labels)
        self._z, self._given = z[: given.n_counted], given.labels[: given.n_counted]
        self._n_classes = 0 if given.has_pool else given.n_classes  # of those counted
        if self.start is None and not given.n_classes:
            raise DegenerateError("No image is labeled.", expected="labeled classes, a pool, or `start`, a first K")
        self._first_k = round(1.5 * given.n_classes) if self.start is None else self.start
        history = self._rounds(np.arange(len(self._z)), self.seed)
        return history[-1], np.array(list(enumerate(history)), dtype=np.float64)

    def interval(self, level: float = 0.9, n_resamples: int = 10) -> tuple[int, int]:
        """How far K moves when a fifth of the images is left out, another fifth and another seed each time.

        A bootstrap would repeat images, and a repeated image is a cluster to a mixture. Fewer images have fewer
        clusters, and most of them are the same each time: deviations count from the median of the resamples, twice,
        as a jackknife has it that leaves out a fifth: sqrt(0.8 / 0.2). Every labeled class keeps an image.
        """
        estimates = []
        _, first = np.unique(self._given, return_index=True)
        for resample in track(range(n_resamples), n_resamples, "resamples"):
            draw = generator(self.seed, "interval", resample)
            kept = draw.permutation(len(self._z))[: math.ceil(_KEPT * len(self._z))]
            estimates.append(self._rounds(np.union1d(kept, first), int(draw.integers(1 << 31)))[-1])
        deviation = math.sqrt(_KEPT / (1 - _KEPT)) * (np.array(estimates) - np.median(estimates))
        moved = np.maximum(self.n_categories_ + deviation.round().astype(np.int64), max(self._n_classes, 1))
        return middle_interval(moved.tolist(), level, holding=self.n_categories_)

    def _rounds(self, rows: Int[Array, " kept"], seed: int) -> list[int]:
        """K before each round on these images, and after the last one."""
        z, given, n_classes = self._z[rows], self._given[rows], self._n_classes
        k = max(min(self._first_k, n_classes + int((given == UNLABELED).sum())), n_classes, 1)
        kmeans = SemiSupKMeans(k, n_init=self.n_init, normalize=False, seed=seed).fit(z, given)
        step = SplitMerge(z, given != UNLABELED, self._niw, self.accept_worse, self.use_labeled, seed)
        history = [k]
        for n_round in track(range(self.max_rounds), self.max_rounds, "split and merge rounds"):
            centroids = step.centroids(kmeans.labels_, n_classes, n_round)
            history.append(n_classes + len(centroids))
            if len(set(history[-_STABLE_ROUNDS - 1 :])) == 1 and len(history) > _STABLE_ROUNDS:
                break
            kmeans = SemiSupKMeans(history[-1], init=centroids, normalize=False).fit(z, given)
        return history
