"""Soft weights from the beta density: neither too similar nor too dissimilar."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import DOMAINS, cosine_similarity, row_norms
from justright.selection.base import Resample, Selector
from justright.selection.beta_weights import BetaCurve, harden, remarks_about, weight_reasons
from justright.selection.class_weights import ClassWeights, ImageWeights, SelectionPlot
from justright.selection.shards import PoolFeatures, TargetFeatures, check_classes, n_rows
from justright.selection.target_clusters import CLUSTER_COUNT, ClusterCount, cluster_target
from justright.selection.target_similarity import REDUCTION, reduce_cosines, similarity_to_target
from justright.utils.errors import DegenerateError, JustrightError, NothingSelectedError
from justright.utils.settings import NOT_NEGATIVE, POSITIVE, WHOLE, Range, one_of, setting
from justright.utils.types import Array

IMAGE_BLOCK = 1024  # pool images met with the whole target at once, at image level
MAX_KEPT_COSINES = 250_000_000  # 1 GB in single precision, for resampling
HIGHEST = 1e3  # where a curve in the figure ends: a density below 1 and 1 has poles

WEIGHTS = Range(
    lambda ends: len(ends) == 2 and all(map(NOT_NEGATIVE.allows, ends)) and ends[0] <= ends[1],
    "two numbers of at least 0, the smaller one first",
)


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
    domain: str = setting("clip", "how a cosine is brought to [0, 1], see `to_unit_interval`", one_of(*DOMAINS))
    normalize: str = setting(
        "none", "divide by the largest weight, or by an image's mean", one_of("none", "max", "mean")
    )
    level: str = setting("class", "weigh each class by its centroid, or each image by itself", one_of("class", "image"))
    threshold: float | None = setting(None, "weights above it become 1, all others 0", NOT_NEGATIVE.or_none())
    weight_range: tuple[float, float] | None = setting(None, "smallest and largest weight allowed", WEIGHTS.or_none())
    n_clusters: ClusterCount = setting(None, "clusters for domain target; sqrt(images / 2) if not given", CLUSTER_COUNT)
    seed: int = setting(0, "decides the clusters of the target", WHOLE)

    @classmethod
    def official(cls) -> BetaSelector:
        """What the paper's public code does instead: see docs/decisions.md."""
        return cls(level="image", domain="raw", normalize="max", weight_range=(0.01, 1.0))

    def check(self) -> None:
        """Refuse parameters that cannot be, alone or together."""
        super().check()
        if self.threshold is not None and self.normalize != "none":
            problem = f"threshold={self.threshold:g} together with normalize={self.normalize!r}"
            raise JustrightError(problem, expected="one of the two: thresholded weights are 0 and 1 already")

    def _weigh(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        """At class level both are read once. At image level the target is read anew for every 1,024 pool images."""
        self.target_similarity_ = self._target_similarity(target)
        if self.level == "image":
            return self._weigh_images(pool, target)
        sums = pool.sums()
        centroids = sums.centroids()  # Eq. 7
        if (is_zero := row_norms(centroids) == 0).any():
            raise DegenerateError(
                f"the features of class {sums.classes[is_zero][0]} cancel out: their mean is zero",
                expected="a centroid with a direction",
                advice="look at the images of this class, or level='image'",
            )
        self.class_count_ = sums.counts
        similarity = self.class_similarity_ = similarity_to_target(centroids, target, self.reduction)  # Eq. 12
        return self._decision(sums.classes, self._final(similarity, sums.counts), similarity, None)

    def _weigh_images(self, pool: PoolFeatures, target: TargetFeatures) -> ClassWeights:
        target.require_repeatable("level='image' reads the target once for every block of the pool")
        similarities: list[Float[Array, " _"]] = [np.zeros(0)]
        labels: list[Int[Array, " _"]] = [np.zeros(0, dtype=np.int64)]
        for features, own in pool.batches():
            labels.append(own)
            for start in range(0, len(features), IMAGE_BLOCK):
                block = features[start : start + IMAGE_BLOCK]
                similarities.append(similarity_to_target(block, target, self.reduction))
        of_image = np.concatenate(labels)
        classes, position, self.class_count_ = np.unique(of_image, return_inverse=True, return_counts=True)
        check_classes(classes)
        self.image_similarity_ = np.concatenate(similarities)
        self.image_weight_ = self._final(self.image_similarity_, np.ones(len(position), dtype=np.int64))
        self.class_similarity_ = np.bincount(position, self.image_similarity_) / self.class_count_
        weight = np.bincount(position, self.image_weight_) / self.class_count_
        images = ImageWeights(of_image, self.image_weight_, self._reasons(self.image_weight_, self.image_similarity_))
        return self._decision(classes, weight, self.image_similarity_, images)

    def _decision(self, classes: Array, weight: Array, weighed: Array, images: ImageWeights | None) -> ClassWeights:
        return ClassWeights(
            classes,
            weight,
            self._reasons(weight, self.class_similarity_),
            columns={"similarity": self.class_similarity_},
            found={"target_similarity": self.target_similarity_} if self.domain == "target" else {},
            images=images,
            remarks=remarks_about(self._curve().density(weighed)),
        )

    def _target_similarity(self, target: TargetFeatures) -> float:
        """How similar clusters of the target are to the target, at the median: what the domain "target" goes by."""
        if self.domain != "target":
            return math.nan
        target.require_repeatable("domain='target' clusters the target before it is met")
        shards = [shard for _, shard in target.items()]
        n_clusters, dim = self.n_clusters, np.shape(shards[0])[-1]
        if n_clusters is None:
            n_clusters = max(2, round(math.sqrt(sum(map(n_rows, shards)) / 2)))
        _, sums = cluster_target(target, dim, n_clusters, self.seed)
        return float(np.median(similarity_to_target(sums.centroids(), target, self.reduction)))

    def _curve(self) -> BetaCurve:
        return BetaCurve(self.alpha, self.beta, self.domain, self.target_similarity_)

    def _final(self, similarity: Float[Array, " n"], counts: Int[Array, " n"]) -> Float[Array, " n"]:
        """Weights after threshold or normalization, then clamped. `counts` are the images each weight stands for."""
        weight, at_threshold = self._curve().soft_weights(similarity), ""
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

    def _reasons(self, weight: Float[Array, " n"], similarity: Float[Array, " n"]) -> list[str]:
        return weight_reasons(weight, similarity, self._curve().peak(), self.threshold is not None)

    def plot(self, weights: ClassWeights) -> SelectionPlot:
        """Similarity against weight, on the beta curve."""
        similarity = weights.columns["similarity"]
        curve = BetaCurve(self.alpha, self.beta, self.domain, weights.found.get("target_similarity", math.nan))
        grid, density = curve.points(similarity)
        if self.normalize != "none":
            density = density * (weights.weight.max() / curve.density(similarity).max())
        if self.weight_range is not None:
            density = np.clip(density, *self.weight_range)
        density = np.minimum(density, HIGHEST)
        curves, level = [(grid, density)], None
        if self.threshold is not None:
            curves.append((grid, harden(density, self.threshold)))
            level = (self.threshold, f"threshold {self.threshold:g}")
        return SelectionPlot("similarity", "weights", f"Beta({self.alpha:g}, {self.beta:g})", tuple(curves), level)

    def resampler(self, pool: PoolFeatures, target: TargetFeatures) -> Resample:
        """Cosines are computed once, while they fit; a resample of the target is a choice of their columns."""
        if self.level == "image":
            return super().resampler(pool, target)
        sums = pool.sums()
        (features,) = target.batches(sums.sums.shape[1])
        if len(sums.classes) * len(features) > MAX_KEPT_COSINES:
            return super().resampler(pool, target)
        cosines = cosine_similarity(sums.centroids(), features)
        self.target_similarity_ = self._target_similarity(target)

        def weigh(rows: Int[Array, " rows"], seed: int) -> Float[Array, " classes"]:
            return self._final(reduce_cosines(cosines[:, rows], self.reduction), sums.counts)

        return weigh
