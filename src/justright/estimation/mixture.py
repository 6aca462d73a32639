"""The number of Gaussians that explains the features best, by splitting and merging clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import gammaln, multigammaln

from justright.clustering import SemiSupKMeans
from justright.estimation.base import CategoryCounter, Curve, Given, middle_interval
from justright.utils.context import track
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.settings import at_least, setting
from justright.utils.types import UNLABELED, Array, Labels

_STABLE_ROUNDS = 3
_KEPT = 0.8  # the share of images that a resample of the interval keeps
_MIN_SIZE = 5  # no cluster this small is split and no half this small accepted, as in GPC: it has no shape yet
_N_PROPOSALS = 4
Members = Int[Array, " _"]
Axes = Float[Array, "images axes"]


@dataclass(repr=False, eq=False)
class MixtureCounter(CategoryCounter):
    """K by split and merge: a cluster is split if two Gaussians explain it better than one, and the reverse.

    After GPC (Zhao et al., ICCV 2023). Each round clusters the images with labels fixed, then decides for every
    cluster whether to split it and for near pairs whether to merge them, by the marginal likelihood under a
    normal-inverse-Wishart prior. It stops when K is the same for three rounds.

    Unlike in GPC, the prior has the width and distance of the labeled classes, and their clusters are split and merged
    too: a new class inside one is split off, a piece of one is merged. The curve has the K before each round and the
    last one.
    """

    curve_axes: ClassVar[tuple[str, str]] = ("round", "K")

    n_axes: int = setting(128, "maximum number of principal axes", at_least(1, Integral))
    start: int | None = setting(None, "the first K; 1.5 times the labeled classes", at_least(1, Integral).or_none())
    max_rounds: int = setting(50, "maximum number of rounds", at_least(1, Integral))
    n_init: int = setting(
        10, "k-means restarts of the first round; later rounds continue from it", at_least(1, Integral)
    )

    def _count(self, given: Given) -> tuple[int, Curve]:
        """Split and merge until K is stable; progress is relative to the maximum number of rounds.

        From a pool only the prior is estimated: width and distance of its classes.
        """
        z = given.axes(self.n_axes)
        given.require_classes(2, advice="CombinedCounter, which needs fewer labels")
        z, self._niw = labeled_prior(z, given.labels)
        self._z, self._given = z[: given.n_counted], given.labels[: given.n_counted]
        self._n_classes = 0 if given.has_pool else given.n_classes  # of those counted
        self._first_k = round(1.5 * given.n_classes) if self.start is None else self.start
        history = self._rounds(np.arange(len(self._z)), self.seed)
        return history[-1], np.array(list(enumerate(history)), dtype=np.float64)

    def interval(self, level: float = 0.9, n_resamples: int = 10) -> tuple[int, int]:
        """How much K varies if another fifth of the images is left out each time, with another seed.

        A bootstrap would repeat images, and a repeated image is a cluster to a mixture. Fewer images have fewer
        clusters, and most of them are the same each time: deviations are from the median of the resamples, times
        sqrt(0.8 / 0.2) = 2 as in a jackknife that leaves out a fifth. Every labeled class keeps an image.
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
        """K before each round on these images, and after the last round."""
        z, given, n_classes = self._z[rows], self._given[rows], self._n_classes
        k = max(min(self._first_k, n_classes + int((given == UNLABELED).sum())), n_classes, 1)
        kmeans = SemiSupKMeans(k, n_init=self.n_init, normalize=False, seed=seed).fit(z, given)
        step = SplitMerge(z, given != UNLABELED, self._niw, seed)
        history = [k]
        for _ in track(range(self.max_rounds), self.max_rounds, "split and merge rounds"):
            centroids = step.centroids(kmeans.labels_, n_classes)
            history.append(n_classes + len(centroids))
            if len(set(history[-_STABLE_ROUNDS - 1 :])) == 1 and len(history) > _STABLE_ROUNDS:
                break
            kmeans = SemiSupKMeans(history[-1], init=centroids, normalize=False).fit(z, given)
        return history


@dataclass(eq=False)
class SplitMerge:
    """Proposes and decides splits and merges of clusters of z.

    A split is proposed by 2-means inside a cluster, a merge between a cluster and its nearest one; both are accepted if
    log H > 0 (see `NormalInverseWishart.log_joint`). A cluster of a labeled class may lose unlabeled members to a new
    cluster and take in a new cluster, but its labeled images stay together. Decisions are cached: late rounds have
    mostly the same clusters.
    """

    z: Float[Array, "images axes"]
    is_labeled: Bool[Array, " images"]
    niw: NormalInverseWishart
    seed: int
    _joint: dict[bytes, float] = field(default_factory=dict, init=False)
    _halves: dict[bytes, tuple[Members, Members] | None] = field(default_factory=dict, init=False)

    def centroids(self, labels: Int[Array, " images"], n_classes: int) -> Float[Array, "new axes"]:
        """First centroids of the next round, for clusters beyond the labeled classes."""
        old: list[Members] = []
        whole: list[Members] = []
        parts: list[Members] = []
        for cluster in range(int(labels.max()) + 1):
            members = np.flatnonzero(labels == cluster)
            halves = self._split(members)
            if halves and self._log_split(*halves) > 0:
                # the next k-means has the labeled class anyway; only the part that was split off needs a centroid
                parts += halves[1:] if cluster < n_classes else halves
            else:
                (old if cluster < n_classes else whole).append(members)
        means = [self.z[members].mean(axis=0) for members in parts + self._merge(old, whole)]
        return np.stack(means) if means else np.zeros((0, self.z.shape[1]))

    def _merge(self, old: list[Members], whole: list[Members]) -> list[Members]:
        """The clusters `whole` after merges with each other; those merged into an old cluster are dropped."""
        clusters = whole + old
        if not whole or len(clusters) < 2:
            return whole
        means = np.stack([self.z[members].mean(axis=0) for members in clusters])
        norms = (means**2).sum(axis=1)
        distance = norms[:, None] - 2 * means @ means.T + norms
        np.fill_diagonal(distance, np.inf)
        nearest = distance[: len(whole)].argmin(axis=1).tolist()
        pairs = sorted({(min(a, b), max(a, b)) for a, b in enumerate(nearest)})
        log_merge = {(a, b): -self._log_split(clusters[a], clusters[b]) for a, b in pairs}
        partner: dict[int, int] = {}
        for (a, b), log_h in sorted(log_merge.items(), key=lambda item: -item[1]):
            if log_h > 0 and a not in partner and b not in partner:
                partner[a], partner[b] = b, a
        alone = [members for a, members in enumerate(whole) if a not in partner]
        return alone + [np.union1d(whole[a], whole[b]) for a, b in partner.items() if a < b < len(whole)]

    def _split(self, members: Members) -> tuple[Members, Members] | None:
        key = members.tobytes()
        if key not in self._halves:
            self._halves[key] = self._two_means(members)
        return self._halves[key]

    def _two_means(self, members: Members) -> tuple[Members, Members] | None:
        """The best of a few 2-means by log H, or None. Labeled members are all in the first half.

        The one of lowest inertia may only separate a few outliers, which is no split.
        """
        given = np.where(self.is_labeled[members], 0, UNLABELED)
        if len(members) < 2 * _MIN_SIZE + 2 or (given == UNLABELED).sum() <= _MIN_SIZE:
            return None  # a half would be too small in any split
        proposals = []
        for attempt in range(_N_PROPOSALS):
            kmeans = SemiSupKMeans(2, n_init=1, normalize=False, seed=self.seed + attempt)
            try:
                half = kmeans.fit(self.z[members], given).labels_
            except DegenerateError:  # no unlabeled members, or all of them are the same point
                return None
            one, other = members[half == 0], members[half == 1]
            if min(len(one), len(other)) > _MIN_SIZE:
                proposals.append((one, other))
        return max(proposals, key=lambda halves: self._log_split(*halves), default=None)

    def _log_split(self, one: Members, other: Members) -> float:
        return self._log_joint(one) + self._log_joint(other) - self._log_joint(np.union1d(one, other))

    def _log_joint(self, members: Members) -> float:
        key = members.tobytes()
        if key not in self._joint:
            self._joint[key] = self.niw.log_joint(self.z[members])
        return self._joint[key]


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """Prior over the mean and covariance of a cluster in d dimensions."""

    mean: Float[Array, " dim"]  # m
    kappa: float  # how many images m counts for
    nu: float  # the same for the covariance, above d - 1
    psi: float  # the scale: Psi = psi I

    def log_marginal(self, x: Float[Array, "members dim"]) -> float:
        """log p(x), mean and covariance integrated out.

            - N d/2 log pi + log G_d(nu*/2) - log G_d(nu/2) + nu/2 log|Psi| - nu*/2 log|Psi*| + d/2 log(kappa/kappa*)

        with kappa* = kappa + N, nu* = nu + N, Psi* = Psi + S + kappa N / kappa* (x_bar - m)(x_bar - m)^T, S the
        scatter about the mean x_bar and G_d the multivariate gamma function (Murphy, 2007).
        """
        n, d = x.shape
        kappa, nu = self.kappa + n, self.nu + n
        center = x.mean(axis=0)
        # Psi* = psi I + A^T A with these rows A; |psi I + A^T A| = psi^(d-m) |psi I + A A^T|: take the smaller.
        rows = np.vstack([x - center, math.sqrt(self.kappa * n / kappa) * (center - self.mean)])
        gram = rows @ rows.T if len(rows) < d else rows.T @ rows
        small = len(gram)
        _, log_det = np.linalg.slogdet(gram + self.psi * np.eye(small))
        log_det += (d - small) * math.log(self.psi)
        return float(
            -n * d / 2 * math.log(math.pi)
            + multigammaln(nu / 2, d)
            - multigammaln(self.nu / 2, d)
            + self.nu / 2 * d * math.log(self.psi)
            - nu / 2 * log_det
            + d / 2 * math.log(self.kappa / kappa)
        )

    def log_joint(self, x: Float[Array, "members dim"]) -> float:
        """log G(N) + log p(x): what a cluster of these N members adds to a mixture, G the gamma function.

        The odds of two clusters against one that holds all their members are then, positive for two,

            log H = log_joint(one) + log_joint(other) - log_joint(both)

        as in GPC: a Dirichlet process of concentration 1 over sizes. A merge asks the same with the opposite sign.
        """
        return float(gammaln(len(x))) + self.log_marginal(x)


def labeled_prior(z: Axes, labels: Labels, strength: float = 10.0) -> tuple[Axes, NormalInverseWishart]:
    """Axes and a prior in which a labeled class is what a cluster is expected to look like.

    It takes two classes or more, and more images than classes (`Given.require_classes`). Axes are scaled so that
    labeled classes have variance 1 along each. Then, with d axes,

        kappa = variance within classes / variance of their means,  nu = strength * d,  E[covariance] = I.
    """
    labeled = z[labels != UNLABELED]
    classes, place, size = np.unique(labels[labels != UNLABELED], return_inverse=True, return_counts=True)
    means = np.stack([labeled[place == k].mean(axis=0) for k in range(len(classes))])
    within = ((labeled - means[place]) ** 2).sum(axis=0) / (len(labeled) - len(classes))
    # classes may agree to the last digit along an axis; a floor keeps that axis from deciding alone
    scale = np.sqrt(np.maximum(within, 1e-3 * within.mean() + 1e-300))
    z, means = z / scale, means / scale
    # the means vary by their own spread and by the error each of them has, 1 / size in these units
    between = float(np.maximum(means.var(axis=0, ddof=1).mean() - (1.0 / size).mean(), 1e-3))
    n_axes = z.shape[1]
    nu = max(strength * n_axes, n_axes + 2.0)
    return z, NormalInverseWishart(mean=z.mean(axis=0), kappa=1.0 / between, nu=nu, psi=nu - n_axes - 1.0)
