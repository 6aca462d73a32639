"""The classes most similar to the target: works for transfer learning, fails for discovery."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from justright.geometry import DISTANCES, ClassSums, domain_similarity, emd
from justright.selection.bins import BinsSelector
from justright.selection.class_weights import ClassWeights, SelectionPlot
from justright.selection.clustered import ClusteredSelector
from justright.utils.errors import DegenerateError, NothingSelectedError
from justright.utils.settings import COUNT, NOT_NEGATIVE, Range, setting

AS_BINS = "bins"
CLASS_COUNT = Range(
    lambda value: value == AS_BINS or COUNT.allows(value), f"{COUNT.expected}, or {AS_BINS}", choices=(AS_BINS,)
)


@dataclass(repr=False, eq=False)
class CuiSelector(ClusteredSelector):
    """Weights 0 and 1: the `n_classes` classes most similar to the target, after Cui et al. [1].

    The similarity of a class is `domain_similarity` with this class alone as the source. The target's clusters replace
    its unknown classes; true classes, passed to `fit` as `target_clusters`, make it an oracle.

    Attributes: class_similarity_, rank_ (from 1) per class; target_clusters_ per target image.
    [1] Y. Cui et al., Large Scale Fine-Grained Categorization and Domain-Specific Transfer Learning, CVPR 2018.
    """

    n_classes: int | str | None = setting(
        None, "classes to keep; bins: as many as Bins would; half of the pool's if not given", CLASS_COUNT.or_none()
    )
    gamma: float = setting(0.01, "scale of the similarity; does not change the ranking", NOT_NEGATIVE)

    def _decide(self, classes: ClassSums, clusters: ClassSums) -> ClassWeights:
        distance = DISTANCES[self.metric](classes.centroids(), clusters.centroids())
        cluster_mass, n_kept = self._mass(clusters), self._number(classes, clusters)
        similarity = [domain_similarity(row[None], None, cluster_mass, self.gamma) for row in distance]  # Eq. 9
        self.class_similarity_ = np.array(similarity)
        # By distance, not by its exponential: a large gamma sends all similarities to 0, but not their order.
        order = np.argsort([emd(row[None], None, cluster_mass) for row in distance], kind="stable")
        self.rank_ = np.zeros(len(distance), dtype=np.int64)
        self.rank_[order] = np.arange(1, len(order) + 1)
        is_kept = self.rank_ <= n_kept
        reason = [
            f"kept: rank {rank} of {n_kept}" if kept else f"too far: rank {rank} > {n_kept}"
            for rank, kept in zip(self.rank_.tolist(), is_kept, strict=True)
        ]
        columns = {"similarity": self.class_similarity_, "rank": self.rank_}
        return ClassWeights(classes.classes, is_kept.astype(np.float64), reason, columns)

    def plot(self, weights: ClassWeights) -> SelectionPlot:
        """Classes by similarity, and the last one that is kept."""
        n_kept = int((weights.weight > 0).sum())
        return SelectionPlot("similarity", cut=(n_kept, f"{n_kept} kept"))

    def _number(self, classes: ClassSums, clusters: ClassSums) -> int:
        n_pool_classes, n_kept = len(classes.classes), self.n_classes
        if n_kept == AS_BINS:
            shared = {name: getattr(self, name) for name in ("n_clusters", "metric", "mass", "seed")}
            try:
                n_kept = int(BinsSelector(**shared)._decide(classes, clusters).weight.sum())
            except NothingSelectedError:  # Bins keeps none
                n_kept = None
        n_kept = n_pool_classes // 2 if n_kept is None else int(n_kept)
        if not 1 <= n_kept <= n_pool_classes:
            problem = f"n_classes={n_kept} of a pool with {n_pool_classes} classes"
            raise DegenerateError(problem, expected=f"a number from 1 to {n_pool_classes}")
        return n_kept
