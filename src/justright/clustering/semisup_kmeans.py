"""k-means that keeps the labels it is given."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.clustering.arrays import like, row_blocks, squared_norms, sum_by_group
from justright.clustering.assignment import nearest_two
from justright.clustering.checks import check_features, check_labels, check_n_clusters, prepared
from justright.clustering.lloyd import LloydFit, Points, lloyd
from justright.clustering.plusplus import SeedingOrder
from justright.utils.errors import DegenerateError
from justright.utils.progress import Track, silent
from justright.utils.seeding import generator
from justright.utils.settings import NOT_NEGATIVE, WHOLE, YES_OR_NO, Range, at_least, refuse_out_of_range, setting
from justright.utils.types import UNLABELED, Array

INIT = Range(lambda given: bool(array_namespace(given).all(array_namespace(given).isfinite(given))), "finite rows")


@dataclass(eq=False)
class SemiSupKMeans:
    """Clusters of images, some of which are labeled: given labels stay, the rest is assigned.

        min  sum_i ||x_i - c_{label i}||^2    with label_i fixed for labeled i

    The semi-supervised k-means of GCD (Vaze et al., CVPR 2022): one cluster per labeled class starts at the class
    mean, the further ones start by k-means++ on unlabeled features; then Lloyd's iterations in which only
    unlabeled images move. The restart of lowest inertia wins. Without labels it is plain k-means.

    Works on numpy arrays and torch tensors; what it learns is of the same kind, on the same device.

    Each restart draws from its own stream, so more of them can only lower the inertia; with `init` there is one. More
    `n_candidates` find lower inertia with fewer restarts; GCD has 1, scikit-learn 2 + log K. A `tol` of 0 goes on until
    no image changes. `centroids_` and `init` live in the space of normalized features.

    Attributes after `fit`:
        labels_: the cluster of each image.
        classes_: the labeled classes in ascending order; cluster k is the class classes_[k], later clusters are new.
        centroids_, inertia_, n_iter_: of the winning restart.
    """

    n_clusters: int = setting(MISSING, "K, at least the number of labeled classes", WHOLE)
    n_init: int = setting(10, "number of restarts", at_least(1, Integral))
    max_iter: int = setting(100, "iterations of one restart at most", at_least(1, Integral))
    tol: float = setting(1e-4, "a restart ends when (sum_k ||shift_k||)^2 is below it", NOT_NEGATIVE)
    n_candidates: int = setting(1, "rows tried per step of k-means++; the best one is taken", at_least(1, Integral))
    seed: int = setting(0, "same seed, same result", WHOLE)
    init: Float[Any, "new dim"] | None = setting(None, "starts of new clusters, instead of k-means++", INIT.or_none())
    normalize: bool = setting(True, "scale every feature to length 1 first", YES_OR_NO)

    def fit(self, features: Any, labels: Any = None, track: Track = silent) -> SemiSupKMeans:
        """Cluster features (images x dim) given labels (images), -1 for unlabeled and None for no label at all."""
        refuse_out_of_range(self, DegenerateError)
        check_features(features)
        given = check_labels(features, labels)
        is_labeled = given != UNLABELED
        self.classes_, class_of_labeled = np.unique(given[is_labeled], return_inverse=True)
        check_n_clusters(self.n_clusters, len(self.classes_), int((~is_labeled).sum()))

        x = prepared(features, self.normalize)
        xp = array_namespace(x)
        # Distances do not depend on the origin, but their rounding does: it is least around the mean.
        origin = xp.mean(x, axis=0)
        x = x - origin[None, :]
        labeled_here, unlabeled_here = like(is_labeled, x), like(~is_labeled, x)
        cluster_of_labeled = like(class_of_labeled, x)
        counts = np.bincount(class_of_labeled, minlength=self.n_clusters)
        points = self._points(x[labeled_here, :], cluster_of_labeled, counts, x[unlabeled_here, :])
        starts = self._starts(points, origin)
        watched = track(starts, len(starts), "k-means restarts")
        outcomes = (lloyd(points, start, self.max_iter, self.tol) for start in watched)
        best: LloydFit = min(outcomes, key=lambda outcome: outcome.inertia)

        self.labels_ = xp.zeros(x.shape[0], dtype=xp.int64, device=x.device)
        self.labels_[labeled_here], self.labels_[unlabeled_here] = cluster_of_labeled, best.labels
        self.centroids_, self.n_iter_ = best.centroids + origin[None, :], best.n_iter
        self.inertia_ = _inertia(x, best.centroids, self.labels_)
        return self

    def predict(self, features: Any) -> Any:
        """The cluster whose centroid is nearest to each feature."""
        check_features(features)
        if (dim := self.centroids_.shape[1]) != features.shape[1]:
            raise DegenerateError(f"Features of {features.shape[1]} numbers.", expected=f"{dim}, as in fit")
        x = prepared(features, self.normalize)
        origin = array_namespace(x).mean(self.centroids_, axis=0, keepdims=True)
        return nearest_two(x - origin, self.centroids_ - origin)[0]

    @staticmethod
    def _points(labeled: Any, cluster: Int[Any, " labeled"], counts: Int[Array, " clusters"], unlabeled: Any) -> Points:
        xp, sums = array_namespace(labeled), sum_by_group(labeled, cluster, len(counts))
        norm = float(xp.sum(squared_norms(labeled), dtype=xp.float64))
        return Points(unlabeled, squared_norms(unlabeled), sums, counts, norm)

    def _starts(self, points: Points, origin: Float[Any, " dim"]) -> list[Float[Any, "clusters dim"]]:
        """The first centroids of each restart: class means, then drawn rows."""
        xp = array_namespace(points.x)
        n_classes = len(self.classes_)
        count = like(points.labeled_count[:n_classes].astype(np.float64), points.x)
        means = xp.astype(points.labeled_sum[:n_classes, :] / count[:, None], points.x.dtype)
        n_new = self.n_clusters - n_classes
        if self.init is not None:
            if tuple(self.init.shape) != (n_new, points.x.shape[1]):
                raise DegenerateError(
                    f"Initial centroids of shape {tuple(self.init.shape)}.",
                    expected=f"({n_new}, {points.x.shape[1]}), one per cluster beyond the labeled classes",
                )
            given = xp.astype(xp.asarray(self.init, device=origin.device), origin.dtype)
            return [xp.concat([means, given - origin[None, :]])]
        if n_new == 0:
            return [means]  # nothing is drawn, so every restart would be this one
        restarts = [generator(self.seed, "k-means++", restart) for restart in range(self.n_init)]
        picks = SeedingOrder(points.x, means, restarts, self.n_candidates).prefix(n_new)
        if picks.shape[1] < n_new:
            raise DegenerateError(
                f"Only {n_classes + picks.shape[1]} clusters can start at different places: every unlabeled feature "
                "equals one of them.",
                expected="as many distinct features as clusters",
                advice="lower n_clusters, or look for duplicates and for features that collapsed to a point",
            )
        return [xp.concat([means, xp.take(points.x, like(each, points.x), axis=0)]) for each in picks]


def _inertia(x: Float[Any, "images dim"], centroids: Float[Any, "clusters dim"], labels: Int[Any, " images"]) -> float:
    """sum_i ||x_i - c_{label i}||^2 from differences: products would lose what is left between near points."""
    xp, total = array_namespace(x), 0.0
    for rows in row_blocks(x.shape[0], x.shape[1]):
        difference = x[rows, :] - xp.take(centroids, labels[rows], axis=0)
        total += float(xp.sum(squared_norms(difference), dtype=xp.float64))
    return total
