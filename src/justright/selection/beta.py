"""Soft weights from the beta density: neither too similar nor too dissimilar."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial, reduce

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import (
    DOMAINS,
    beta_density,
    cosine_similarity,
    farthest_similarity,
    nearest_similarity,
    row_norms,
    row_quantiles,
    to_unit_interval,
)
from justright.selection.base import Selector
from justright.selection.class_weights import ClassWeights, ImageWeights, SelectionPlot
from justright.selection.clustered import CLUSTER_COUNT, cluster_target
from justright.selection.shards import PoolFeatures, TargetFeatures, TargetItem, check_classes, target_batch
from justright.utils.errors import DegenerateError, JustrightError, NothingSelectedError
from justright.utils.settings import NOT_NEGATIVE, POSITIVE, SHARE, WHOLE, Range, one_of, setting
from justright.utils.types import Array

MAX_COSINES = 64_000_000  # kept for a quantile, 256 MB in single precision
IMAGE_BLOCK = 1024  # pool images that are compared with the whole target at once, at image level
HIGHEST = 1e3  # where a curve in the figure is cut: a density with shapes below 1 has poles
N_POINTS = 800  # of a curve in the figure
TINY_WEIGHT, TINY_SHARE = 1e-3, 0.9  # a warning is made if more than this share of the weights is smaller

WEIGHTS = Range(
    lambda ends: len(ends) == 2 and all(map(NOT_NEGATIVE.allows, ends)) and ends[0] <= ends[1],
    "two numbers of at least 0, the smaller one first",
)
REDUCTIONS = ("min", "median", "max")
REDUCTION = Range(lambda r: r in REDUCTIONS or SHARE.allows(r), "min, median, max or a quantile in [0, 1]", REDUCTIONS)
Values = Float[Array, " n"]  # one for each class or image


@dataclass(repr=False, eq=False)
class BetaSelector(Selector):
    """Soft class weights that peak between too similar and too dissimilar. Eq. 13.

    omega^c = b(gamma_c; alpha, beta),   gamma_c = `farthest_similarity`,   b = `beta_density`

    Tab. A3 varies `reduction`, which may also be a quantile; Tab. 6 varies `threshold`, which excludes `normalize`.

    Attributes, one entry per class: classes_, class_count_, class_similarity_, class_weight_, reason_. At image level
    similarity and weight of a class are means, and image_similarity_, image_weight_ are aligned with the pool.
    target_similarity_ is the median similarity of the target's own clusters to the target, NaN unless domain="target".
    """

    alpha: float = setting(5.0, "shape of the density, larger favors similar classes; 1 and 1 weigh all 1", POSITIVE)
    beta: float = setting(5.0, "shape of the density, larger favors dissimilar classes", POSITIVE)
    _: KW_ONLY
    reduction: str | float = setting("min", "which of a class's cosines to the target counts", REDUCTION)
    domain: str = setting("clip", "how a cosine is mapped to [0, 1], see `to_unit_interval`", one_of(*DOMAINS))
    normalize: str = setting(
        "none", "divide by the largest weight, or by an image's mean", one_of("none", "max", "mean")
    )
    level: str = setting("class", "weigh each class by its centroid, or each image by itself", one_of("class", "image"))
    threshold: float | None = setting(None, "weights above it become 1, all others 0", NOT_NEGATIVE.or_none())
    weight_range: tuple[float, float] | None = setting(None, "smallest and largest weight allowed", WEIGHTS.or_none())
    n_clusters: int | None = setting(None, "clusters for domain target; sqrt(images / 2) if not given", CLUSTER_COUNT)
    seed: int = setting(0, "decides the clusters of the target", WHOLE)

    @classmethod
    def official(cls) -> BetaSelector:
        """The settings of the paper's public code, which differ from the paper: see docs/research/decisions.md."""
        return cls(level="image", domain="raw", normalize="max", weight_range=(0.01, 1.0))

    def check(self) -> None:
        """Validate the parameters."""
        super().check()
        if self.threshold is not None and self.normalize != "none":
            problem = f"threshold={self.threshold:g} together with normalize={self.normalize!r}"
            raise JustrightError(problem, expected="one of the two: thresholded weights are 0 and 1 already")

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        """At class level both are read once, for a quantile the target as often as its memory needs.

        At image level the target is read again for every 1,024 pool images.
        """
        self.target_similarity_ = self._target_similarity(target)
        images = None
        if self.level == "class":
            sums = pool.sums()
            classes, self.class_count_ = sums.classes, sums.counts
            centroids = sums.centroids()  # Eq. 7
            if (is_zero := row_norms(centroids) == 0).any():
                raise DegenerateError(
                    f"the features of class {classes[is_zero][0]} cancel out: their mean is zero",
                    expected="a centroid with a direction",
                    advice="look at the images of this class, or level='image'",
                )
            similarity = self.class_similarity_ = similarity_to_target(centroids, target, self.reduction)  # Eq. 12
            weight = self._final(similarity, self.class_count_)
        else:
            labels, similarity = self._of_images(pool, target)
            classes, position, self.class_count_ = np.unique(labels, return_inverse=True, return_counts=True)
            check_classes(classes)
            self.image_similarity_ = similarity
            self.image_weight_ = self._final(similarity, np.ones(len(labels), dtype=np.int64))
            images = ImageWeights(labels, self.image_weight_, self._reasons(self.image_weight_, similarity))
            self.class_similarity_ = np.bincount(position, similarity) / self.class_count_
            weight = np.bincount(position, self.image_weight_) / self.class_count_
        return ClassWeights(
            classes,
            weight,
            self._reasons(weight, self.class_similarity_),
            columns={"similarity": self.class_similarity_},
            found={"target_similarity": self.target_similarity_} if self.domain == "target" else {},
            images=images,
            warnings=warnings_about(self._curve().density(similarity)),
        )

    def _of_images(self, pool: PoolFeatures, target: TargetFeatures) -> tuple[Int[Array, " n"], Values]:
        """The label of each image of the pool, and its similarity to the target."""
        target.require_repeatable("level='image' reads the target once for every block of the pool")
        labels, similarities = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for features, own in pool.batches():
            labels.append(own)
            for start in range(0, len(features), IMAGE_BLOCK):
                block = features[start : start + IMAGE_BLOCK]
                similarities.append(similarity_to_target(block, target, self.reduction))
        return np.concatenate(labels), np.concatenate(similarities)

    def _target_similarity(self, target: TargetFeatures) -> float:
        """The median similarity of the target's clusters to the target, the reference of the domain "target"."""
        if self.domain != "target":
            return math.nan
        target.require_repeatable("domain='target' clusters the target first")
        _, first = next(target.items())
        n_clusters = self.n_clusters or max(2, round(math.sqrt(target.n_images() / 2)))
        _, sums = cluster_target(target, np.shape(first)[-1], n_clusters, self.seed)
        return float(np.median(similarity_to_target(sums.centroids(), target, self.reduction)))

    def _curve(self) -> BetaCurve:
        return BetaCurve(self.alpha, self.beta, self.domain, self.target_similarity_)

    def _final(self, similarity: Values, counts: Int[Array, " n"]) -> Values:
        """Weights after threshold or normalization, then clipped. `counts` is the number of images of each weight."""
        weight, at_threshold = self._curve().density(similarity), ""
        if len(at := similarity[~np.isfinite(weight)]):
            raise DegenerateError(
                f"an infinite weight at similarity {at[0]:g}",
                expected="alpha and beta of at least 1 where similarities reach the ends of [0, 1]",
                advice="alpha >= 1 and beta >= 1, or domain='rank', which never reaches them",
            )
        if self.threshold is not None:
            weight, at_threshold = harden(weight, self.threshold), f" at threshold {self.threshold:g}"
        if not np.any(weight > 0):
            raise NothingSelectedError(
                f"all {len(weight)} weights are 0{at_threshold}",
                expected="at least one class neither too near nor too far",
                advice="domain='affine' or 'rank', reduction='median', or a lower threshold",
            )
        if self.normalize == "max":
            weight = weight / weight.max()
        elif self.normalize == "mean":
            weight = weight / np.average(weight, weights=counts)
        return weight if self.weight_range is None else np.clip(weight, *self.weight_range)

    def _reasons(self, weight: Values, similarity: Values) -> list[str]:
        """The reason for the weight of each class or image."""
        peak, reasons = self._curve().peak(), []
        for w, s in zip(weight.tolist(), similarity.tolist(), strict=True):
            text = f"similarity {s:.2f} weighs {w:.2f}"
            if w == 0:
                reasons.append(f"{'left out' if peak is None else 'too far' if s < peak else 'too near'}: {text}")
            else:
                reasons.append(text if self.threshold is None else f"kept: similarity {s:.2f}")
        return reasons

    def plot(self, weights: ClassWeights) -> SelectionPlot:
        """Similarity against weight, on the beta curve."""
        similarity = weights.columns["similarity"]
        curve = BetaCurve(self.alpha, self.beta, self.domain, weights.found.get("target_similarity", math.nan))
        grid, density = curve.points(similarity)
        curves, level, weight = [], None, density
        if self.threshold is not None:
            curves, weight = [(grid, np.minimum(density, HIGHEST))], harden(density, self.threshold)
            level = (self.threshold, f"threshold {self.threshold:g}")
        if self.normalize != "none":
            weight = weight * (weights.weight.max() / curve.density(similarity).max())
        if self.weight_range is not None:
            weight = np.clip(weight, *self.weight_range)
        curves.append((grid, np.minimum(weight, HIGHEST)))
        return SelectionPlot("similarity", "weights", f"Beta({self.alpha:g}, {self.beta:g})", tuple(curves), level)


@dataclass(frozen=True)
class BetaCurve:
    """The beta density over cosines, mapped to [0, 1] by a domain; `reference` is r of the domain "target"."""

    alpha: float
    beta: float
    domain: str
    reference: float = math.nan

    def density(self, similarity: Values) -> Values:
        """The density at each similarity; infinite at a pole."""
        # A cosine is in [-1, 1], the density is defined on [0, 1]: see docs/research/decisions.md, "beta domain".
        return beta_density(to_unit_interval(similarity, self.domain, self.reference), self.alpha, self.beta)  # Eq. 11

    def peak(self) -> float | None:
        """The cosine of largest weight, if there is one and the domain does not depend on the other classes."""
        if self.alpha <= 1 or self.beta <= 1 or self.domain in ("minmax", "rank"):
            return None
        mode = (self.alpha - 1) / (self.alpha + self.beta - 2)
        if self.domain == "target":
            return 2 * mode * self.reference
        return 2 * mode - 1 if self.domain == "affine" else mode

    def points(self, similarity: Float[Array, " classes"]) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
        """Points of the curve, for the figure; `similarity` is that of the classes."""
        if self.domain == "rank":  # defined at the classes only
            grid = np.sort(similarity)
        elif self.domain == "minmax":
            grid = np.linspace(similarity.min(), similarity.max(), N_POINTS)
        else:
            grid = np.linspace(-1.0 if self.domain == "affine" else min(0.0, float(similarity.min())), 1.0, N_POINTS)
        return grid, self.density(grid)


def harden(weight: Values, threshold: float) -> Values:
    """1 where the weight exceeds the threshold, else 0 (Tab. 6).

    The threshold applies to the density itself, before any normalization.
    """
    return (weight > threshold).astype(np.float64)


def warnings_about(weight: Values) -> tuple[str, ...]:
    """A warning if nearly all densities are close to 0."""
    share = float(np.mean(weight < TINY_WEIGHT))
    text = f"{100 * share:.0f}% of the weights are below {TINY_WEIGHT:g}: labels will hardly count"
    advice = "try --domain affine or --normalize mean (in Python domain='affine' or normalize='mean')"
    return (f"{text}; {advice}",) if share > TINY_SHARE else ()


def similarity_to_target(centroids: Float[Array, "n dim"], target: TargetFeatures, reduction: str | float) -> Values:
    """The cosine of each centroid to the farthest image ("min"), the nearest ("max"), or a quantile over all.

    A quantile needs the cosines of all images at once: of a large target those of some centroids at a time, unless
    its shards can be read only once.
    """
    if reduction == "min":
        return reduce(np.minimum, target.each(partial(_of_shard, farthest_similarity, centroids)))
    if reduction == "max":
        return reduce(np.maximum, target.each(partial(_of_shard, nearest_similarity, centroids)))
    quantile = 0.5 if reduction == "median" else float(reduction)
    n_at_once = max(1, MAX_COSINES // target.n_images()) if target.is_repeatable else len(centroids)
    similarities = []
    for start in range(0, len(centroids), n_at_once):
        block = centroids[start : start + n_at_once]
        cosines = np.concatenate(list(target.each(partial(_of_shard, cosine_similarity, block))), axis=1)
        similarities.append(row_quantiles(cosines, quantile))
    return np.clip(np.concatenate(similarities), -1.0, 1.0)


def _of_shard(measure: Callable[..., Array], centroids: Float[Array, "n dim"], item: TargetItem) -> Array:
    return measure(centroids, target_batch(item, centroids.shape[1]))
