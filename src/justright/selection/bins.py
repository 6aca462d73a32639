"""Hard selection: discard the far, rank the rest, keep the farther of them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.errors import DegenerateError, JustrightError, NothingSelectedError
from justright.geometry import DISTANCES, ClassSums, distance_to_target, flow
from justright.seeding import generator
from justright.selection.base import check_choice
from justright.selection.clustered import ClusteredSelector
from justright.selection.distance_bins import assign_bins, bin_reasons, vote, vote_reasons
from justright.selection.target_clusters import ClusterCount
from justright.types import Array

ADVICE = "a pool closer to the target, fewer n_bins, discard=False, or BetaSelector, which weighs without discarding"


class BinsSelector(ClusteredSelector):
    """Weights 0 and 1: classes too far from the target are discarded, then those too near.

    The target's clusters are split at random into halves D_0 and D_1. With the optimal flow from the pool's classes and
    D_0 to D_1, every class has a distance d_i (`distance_to_target`), and the mean distance of D_0 is the threshold:
    what lies farther from the target than the target from itself goes. Survivors are ranked and cut into `n_bins` of
    equal size; the last, farthest one is kept.

    Parameters:
    n_bins          L (Tab. A6)
    n_clusters      K: the number of categories in the target, or a fitted estimator of it (Tab. A5, A8)
    n_splits        random halvings
    metric          "euclidean", "cosine" or "l2": images brought to length 1 first (Tab. A7)
    keep_bin        which bin to keep, from 1, the nearest; None means the last
    mass            "images": a class or cluster weighs as many images as it has; "uniform": all alike
    discard, select whether the first and the second step are taken (Tab. A4)
    combine         "average" distances and threshold over splits, or "majority" of the splits' decisions
    equal           bins have equally many "classes" or "images"
    seed            of k-means and of the splits

    Attributes: class_count_, class_distance_, bin_ (0 discarded, else 1 to n_bins), kept_share_ (of splits) per class;
    threshold_; split_distance_, split_threshold_ per split; target_clusters_ per target image.
    """

    def __init__(
        self,
        n_bins: int = 2,
        n_clusters: ClusterCount = None,
        n_splits: int = 10,
        metric: str = "euclidean",
        *,
        keep_bin: int | None = None,
        mass: str = "images",
        discard: bool = True,
        select: bool = True,
        combine: str = "average",
        equal: str = "classes",
        seed: int = 0,
    ):
        self.n_bins = n_bins
        self.n_clusters = n_clusters
        self.n_splits = n_splits
        self.metric = metric
        self.keep_bin = keep_bin
        self.mass = mass
        self.discard = discard
        self.select = select
        self.combine = combine
        self.equal = equal
        self.seed = seed

    def _check_options(self) -> None:
        check_choice("metric", self.metric, tuple(DISTANCES))
        check_choice("mass", self.mass, ("images", "uniform"))
        check_choice("combine", self.combine, ("average", "majority"))
        check_choice("equal", self.equal, ("classes", "images"))
        if self.n_bins < 1 or self.n_splits < 1:
            raise JustrightError(f"n_bins={self.n_bins}, n_splits={self.n_splits}", expected="at least 1 of each")
        if self.keep_bin is not None and not 1 <= self.keep_bin <= self.n_bins:
            raise JustrightError(f"keep_bin={self.keep_bin}", expected=f"a bin from 1 to {self.n_bins}")

    def _decide(self, pool: ClassSums, clusters: ClassSums) -> BinsSelector:
        """From centroids to weights: all that depends on the splits."""
        self.classes_, self.class_count_ = pool.classes, pool.counts
        self.split_distance_, self.split_threshold_ = self._measure(pool, clusters)
        self.class_distance_ = self.split_distance_.mean(axis=0)
        self.threshold_ = float(self.split_threshold_.mean())
        splits = zip(self.split_distance_, self.split_threshold_, strict=True)
        split_bins = np.stack([self._bins(distance, threshold) for distance, threshold in splits])
        self.kept_share_ = self._is_kept(split_bins).mean(axis=0)
        keep_bin = self._keep_bin() if self.select else None
        if self.combine == "majority":
            self.bin_, is_kept = vote(split_bins, self.n_bins), self.kept_share_ > 0.5
            self.reason_ = vote_reasons(self.kept_share_, is_kept, self.bin_, self.n_splits, keep_bin)
        else:
            self.bin_ = self._bins(self.class_distance_, self.threshold_)
            is_kept = self._is_kept(self.bin_)
            self.reason_ = bin_reasons(
                is_kept, self.bin_, self.class_distance_, self.threshold_, self.n_bins, keep_bin, self.discard
            )
        if not is_kept.any():
            expected = "at least one class in the bin to keep"
            raise NothingSelectedError(self._nothing_left(), expected=expected, advice=ADVICE)
        self.class_weight_ = is_kept.astype(np.float64)
        return self

    def _measure(
        self, pool: ClassSums, clusters: ClassSums
    ) -> tuple[Float[Array, "splits classes"], Float[Array, " splits"]]:
        """Distance of each class and threshold, split by split."""
        measure = DISTANCES[self.metric]
        centroids = clusters.centroids()  # Eq. 10
        to_clusters, among = measure(pool.centroids(), centroids), measure(centroids, centroids)
        class_mass, cluster_mass = self._mass(pool), self._mass(clusters)
        distances, thresholds = [], []
        for split in range(self.n_splits):
            zero, one = self._halves(len(centroids), split)
            distance = np.concatenate([to_clusters[:, one], among[np.ix_(zero, one)]])
            k = flow(distance, np.concatenate([class_mass, cluster_mass[zero]]), cluster_mass[one])  # Eq. 14
            d = distance_to_target(distance, k)  # Eq. 15
            distances.append(d[: len(class_mass)])
            thresholds.append(d[len(class_mass) :].mean())
        return np.stack(distances), np.array(thresholds)

    def _halves(self, n_clusters: int, split: int) -> tuple[Int[Array, " zero"], Int[Array, " one"]]:
        if n_clusters < 2:
            raise DegenerateError(
                f"{n_clusters} cluster in the target", expected="at least 2, to compare one half with the other"
            )
        shuffled = generator(self.seed, "bins", split).permutation(n_clusters)
        return np.sort(shuffled[: n_clusters // 2]), np.sort(shuffled[n_clusters // 2 :])

    def _bins(self, distance: Float[Array, " classes"], threshold: float) -> Int[Array, " classes"]:
        limit = float(threshold) if self.discard else None
        return assign_bins(distance, limit, self.class_count_, self.n_bins, self.equal)

    def _keep_bin(self) -> int:
        return self.n_bins if self.keep_bin is None else self.keep_bin

    def _is_kept(self, bins: Int[Array, "..."]) -> Bool[Array, "..."]:
        return bins == self._keep_bin() if self.select else bins > 0

    def _nothing_left(self) -> str:
        n_survivors = int((self.bin_ > 0).sum())
        if n_survivors == 0:
            nearest = self.class_distance_.min()
            return f"no class survives: the nearest is at {nearest:.3g}, the threshold is {self.threshold_:.3g}"
        return f"{n_survivors} of {len(self.bin_)} classes survive the threshold, and none is in bin {self._keep_bin()}"
