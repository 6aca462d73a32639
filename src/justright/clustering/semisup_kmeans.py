"""Semi-supervised k-means."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Float

from justright.clustering.arrays import Centroids, row_blocks, squared_norms, sum_by_group
from justright.clustering.lloyd import Points, SeedingOrder, lloyd, nearest_two
from justright.geometry import at_least_single, unit_rows
from justright.utils.context import track
from justright.utils.errors import DegenerateError
from justright.utils.estimator import Estimator
from justright.utils.seeding import generator
from justright.utils.settings import NOT_NEGATIVE, WHOLE, YES_OR_NO, Range, at_least, check_ranges, setting
from justright.utils.types import UNLABELED, Array, Features, Labels
from justright.utils.validation import check_features, check_labels

INIT = Range(lambda given: np.ndim(given) == 2 and bool(np.isfinite(given).all()), "finite rows")


@dataclass(repr=False, eq=False)
class SemiSupKMeans(Estimator):
    """Clusters of images, some of which are labeled: given labels stay, the other images are assigned.

        min  sum_i ||x_i - c_{label i}||^2    with label_i fixed for labeled i

    The semi-supervised k-means of GCD (Vaze et al., CVPR 2022): one cluster per labeled class starts at the class mean,
    the other clusters start by k-means++ on unlabeled features; then Lloyd's iterations in which only unlabeled images
    move. The restart of lowest inertia wins. Without labels it is plain k-means.

    Each restart has its own random stream, so more restarts can only lower the inertia; with `init` there is one. More
    `n_candidates` reach a lower inertia with fewer restarts; GCD has 1, scikit-learn 2 + log K. With a `tol` of 0 a
    restart continues until no image changes. `centroids_` and `init` are in the space of normalized features.

    Attributes after `fit`:
        labels_: the cluster of each image.
        classes_: the labeled classes in ascending order; cluster k is the class classes_[k], later clusters are new.
        centroids_, inertia_, n_iter_: of the winning restart.
    """

    n_clusters: int = setting(MISSING, "K, at least the number of labeled classes", WHOLE)
    n_init: int = setting(10, "number of restarts", at_least(1, Integral))
    max_iter: int = setting(100, "maximum number of iterations of a restart", at_least(1, Integral))
    tol: float = setting(1e-4, "a restart stops when (sum_k ||shift_k||)^2 is below it", NOT_NEGATIVE)
    n_candidates: int = setting(1, "rows tried per step of k-means++; the best one is taken", at_least(1, Integral))
    seed: int = setting(0, "same seed, same result", WHOLE)
    init: Float[Any, "new dim"] | None = setting(None, "first centroids of new clusters, not k-means++", INIT.or_none())
    normalize: bool = setting(True, "scale every feature to length 1 first", YES_OR_NO)

    def fit(self, features: Any, labels: Any = None) -> SemiSupKMeans:
        """Cluster features (images x dim) with labels (images), -1 for unlabeled; None for no labels at all."""
        check_ranges(self, DegenerateError)
        features = check_features(features)
        n_images = features.shape[0]
        given = np.full(n_images, UNLABELED)
        if labels is not None:
            given = check_labels(labels, n_images, allow_unlabeled=True)
        is_labeled = given != UNLABELED
        self.classes_, class_of_labeled = np.unique(given[is_labeled], return_inverse=True)
        self._check_n_clusters(int((~is_labeled).sum()))

        x = unit_rows(features) if self.normalize else at_least_single(features)
        # Distances do not depend on the origin, but their rounding does: it is least around the mean.
        origin = x.mean(axis=0)
        x = x - origin
        clusters = np.zeros(n_images, dtype=np.int64)
        clusters[is_labeled] = class_of_labeled
        unlabeled = x[~is_labeled]
        points = Points(
            unlabeled,
            squared_norms(unlabeled),
            sum_by_group(x[is_labeled], class_of_labeled, self.n_clusters),
            np.bincount(class_of_labeled, minlength=self.n_clusters),
        )
        starts = self._starts(points, origin)
        self.inertia_ = np.inf
        for start in track(starts, len(starts), "k-means restarts") if len(starts) > 1 else starts:
            clusters[~is_labeled], centroids, n_iter = lloyd(points, start, self.max_iter, self.tol)
            inertia = _inertia(x, centroids, clusters)
            if inertia < self.inertia_:
                self.inertia_, self.n_iter_ = inertia, n_iter
                self.labels_, self.centroids_ = clusters.copy(), centroids + origin
        return self

    def fit_predict(self, features: Any, labels: Any = None) -> Any:
        """Cluster as `fit` does, and return `labels_`."""
        return self.fit(features, labels).labels_

    def predict(self, features: Any) -> Any:
        """The cluster whose centroid is nearest to each feature."""
        features = check_features(features)
        if (dim := self.centroids_.shape[1]) != features.shape[1]:
            raise DegenerateError(f"features of {features.shape[1]} numbers", expected=f"{dim}, as in fit")
        x = unit_rows(features) if self.normalize else at_least_single(features)
        origin = self.centroids_.mean(axis=0)
        return nearest_two(x - origin, self.centroids_ - origin)[0]

    def _check_n_clusters(self, n_unlabeled: int) -> None:
        """Every labeled class needs a cluster of its own, every other cluster an unlabeled image."""
        n_classes = len(self.classes_)
        least, most = max(1, n_classes), n_classes + n_unlabeled
        if not least <= self.n_clusters <= most:
            raise DegenerateError(
                f"{self.n_clusters} clusters for {n_classes} labeled classes and {n_unlabeled} unlabeled images",
                expected=f"from {least}, one per labeled class, to {most}, so that none is empty",
            )

    def _starts(self, points: Points, origin: Float[Array, " dim"]) -> list[Centroids]:
        """The first centroids of each restart: class means, then drawn rows."""
        n_classes = len(self.classes_)
        means = (points.labeled_sum[:n_classes] / points.labeled_count[:n_classes, None]).astype(points.x.dtype)
        n_new = self.n_clusters - n_classes
        if self.init is not None:
            if tuple(self.init.shape) != (n_new, points.x.shape[1]):
                raise DegenerateError(
                    f"init of shape {tuple(self.init.shape)}",
                    expected=f"({n_new}, {points.x.shape[1]}), one row per cluster beyond the labeled classes",
                )
            return [np.concatenate([means, np.asarray(self.init, origin.dtype) - origin])]
        if n_new == 0:
            return [means]  # nothing is drawn, so all restarts would be equal
        restarts = [generator(self.seed, "k-means++", restart) for restart in range(self.n_init)]
        picks = SeedingOrder(points.x, means, restarts, self.n_candidates).prefix(n_new)
        if picks.shape[1] < n_new:
            raise DegenerateError(
                f"only {n_classes + picks.shape[1]} distinct features for {self.n_clusters} clusters",
                expected="as many distinct features as clusters",
                advice="lower n_clusters, or look for duplicates and for features that collapsed to a point",
            )
        return [np.concatenate([means, points.x[rows]]) for rows in picks]


def _inertia(x: Features, centroids: Centroids, labels: Labels) -> float:
    """sum_i ||x_i - c_{label i}||^2 from differences, which are exact where points are close."""
    blocks = row_blocks(*x.shape)
    return sum(float(squared_norms(x[rows] - centroids[labels[rows]]).sum(dtype=np.float64)) for rows in blocks)
