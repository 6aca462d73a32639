"""Hard selection: discard the far, rank the rest, keep the farther of them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.geometry import DISTANCES, ClassSums, distance_to_target, flow
from justright.selection.class_weights import ClassWeights, SelectionPlot, closest_first
from justright.selection.clustered import ClusteredSelector
from justright.utils.context import track
from justright.utils.errors import DegenerateError, JustrightError, NothingSelectedError
from justright.utils.seeding import generator
from justright.utils.settings import COUNT, YES_OR_NO, Range, is_whole_number, one_of, setting
from justright.utils.types import Array

ADVICE = "a pool closer to the target, fewer n_bins, discard=False, or BetaSelector, which weighs without discarding"
DISCARDED = 0  # the bin of classes that are too far
BINS = Range(lambda value: is_whole_number(value, int) and 1 <= value <= 10_000, "a whole number from 1 to 10,000")


@dataclass(repr=False, eq=False)
class BinsSelector(ClusteredSelector):
    """Weights 0 and 1: classes too far from the target are discarded, then those too near.

        threshold = mean_{i in D_0} d_i,     discarded: classes with d_i > threshold

    The target's clusters are split at random into halves D_0 and D_1. The optimal flow from the pool's classes and D_0
    to D_1 (Eq. 14) gives each class and each cluster of D_0 its distance d_i (Eq. 15, `distance_to_target`). So classes
    farther from the target than the target from itself are discarded. The others are ranked by distance and divided
    into `n_bins` of equal size; the last, farthest one is kept.

    Tab. A4 leaves out `discard` or `select`, A5 and A8 vary `n_clusters` (K), A6 `n_bins` (L), A7 `metric`.

    Attributes: class_count_, class_distance_, bin_ (0 discarded, else 1 to n_bins), kept_share_ (of splits) per class;
    threshold_; split_distance_, split_threshold_ per split; target_clusters_ per target image.
    """

    n_bins: int = setting(2, "number of bins for the classes that are near enough", BINS)
    n_splits: int = setting(10, "random halvings of the target", COUNT)
    _: KW_ONLY
    keep_bin: int | None = setting(None, "the bin to keep, from 1, the nearest; the last if not given", COUNT.or_none())
    discard: bool = setting(True, "discard nothing as too far", YES_OR_NO)
    select: bool = setting(True, "keep every class that is not too far", YES_OR_NO)
    combine: str = setting("average", "combine halvings by mean distance, or by vote", one_of("average", "majority"))

    def check(self) -> None:
        """Validate the parameters."""
        super().check()
        if self._keep_bin() > self.n_bins:
            raise JustrightError(f"keep_bin={self.keep_bin}", expected=f"a bin from 1 to {self.n_bins}")

    def _decide(self, classes: ClassSums, clusters: ClassSums) -> ClassWeights:
        self.class_count_ = classes.counts
        self.split_distance_, self.split_threshold_ = self._measure(classes, clusters)
        self.class_distance_ = self.split_distance_.mean(axis=0)
        self.threshold_ = float(self.split_threshold_.mean())
        splits = zip(self.split_distance_, self.split_threshold_, strict=True)
        split_bins = np.stack([self._bins(distance, threshold) for distance, threshold in splits])
        self.kept_share_ = self._is_kept(split_bins).mean(axis=0)
        if self.combine == "majority":
            votes = np.stack([(split_bins == number).sum(axis=0) for number in range(self.n_bins + 1)])
            self.bin_, is_kept = votes.argmax(axis=0), self.kept_share_ > 0.5
        else:
            self.bin_ = self._bins(self.class_distance_, self.threshold_)
            is_kept = self._is_kept(self.bin_)
        if not is_kept.any():
            expected = "at least one class in the bin to keep"
            raise NothingSelectedError(self._nothing_left(), expected=expected, advice=ADVICE)
        reason = [self._reason(place, kept) for place, kept in enumerate(is_kept.tolist())]
        columns = {"distance": self.class_distance_, "bin": self.bin_}
        return ClassWeights(
            classes.classes, is_kept.astype(np.float64), reason, columns, found={"threshold": self.threshold_}
        )

    def plot(self, weights: ClassWeights) -> SelectionPlot:
        """Classes by distance, the threshold and the bins."""
        threshold = weights.found["threshold"]
        level = (threshold, f"threshold {threshold:.3g}") if self.discard else None
        parts: list[tuple[int, str, bool]] = []
        if self.combine == "average":  # by majority, bins need not follow the mean distance
            bins = weights.columns["bin"]
            for number in dict.fromkeys(bins[closest_first("distance", weights.columns["distance"])].tolist()):
                is_member = bins == number
                is_kept = bool(weights.weight[is_member].any())
                name = "discarded" if number == DISCARDED else f"bin {number}"
                parts.append((int(is_member.sum()), f"{name}, kept" if is_kept else name, is_kept))
        return SelectionPlot("distance", level=level, parts=tuple(parts))

    def _measure(
        self, classes: ClassSums, clusters: ClassSums
    ) -> tuple[Float[Array, "splits classes"], Float[Array, " splits"]]:
        """Distance of each class and threshold, for each split."""
        measure = DISTANCES[self.metric]
        centroids = clusters.centroids()
        to_clusters, among = measure(classes.centroids(), centroids), measure(centroids, centroids)
        class_mass, cluster_mass = self._mass(classes), self._mass(clusters)
        distances, thresholds = [], []
        for split in track(range(self.n_splits), self.n_splits, "halvings of the target"):
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
        """Bin of each class: 0 beyond the threshold, else from 1, the nearest, to `n_bins`.

        Bins have equally many classes, up to one. Classes at the same distance keep their order.
        """
        order = np.argsort(distance, kind="stable")
        if self.discard:
            order = order[distance[order] <= threshold]
        bins = np.full(len(distance), DISCARDED, dtype=np.int64)
        for number, members in enumerate(np.array_split(order, self.n_bins), start=1):
            bins[members] = number
        return bins

    def _keep_bin(self) -> int:
        return self.n_bins if self.keep_bin is None else self.keep_bin

    def _is_kept(self, bins: Int[Array, "..."]) -> Bool[Array, "..."]:
        return bins == self._keep_bin() if self.select else bins != DISCARDED

    def _reason(self, place: int, is_kept: bool) -> str:
        """Why a class is kept or not."""
        number, distance = self.bin_[place], self.class_distance_[place]
        is_far = number == DISCARDED or (self.select and number >= self._keep_bin())
        verdict = "kept" if is_kept else "too far" if is_far else "too near"
        if self.combine == "majority":
            return f"{verdict}: chosen in {round(self.kept_share_[place] * self.n_splits)} of {self.n_splits} splits"
        if number == DISCARDED:
            return f"{verdict}: {_apart(distance, '>', self.threshold_)}"
        if self.select:
            return f"{verdict}: bin {number} of {self.n_bins}"
        return f"{verdict}: {_apart(distance, '<=', self.threshold_) if self.discard else 'nothing is discarded'}"

    def _nothing_left(self) -> str:
        n_survivors = int((self.bin_ != DISCARDED).sum())
        if n_survivors == 0:
            nearest = self.class_distance_.min()
            return f"no class survives: the nearest is at {nearest:.3g}, the threshold is {self.threshold_:.3g}"
        return f"{n_survivors} of {len(self.bin_)} classes survive the threshold, and none is in bin {self._keep_bin()}"


def _apart(distance: float, sign: str, threshold: float) -> str:
    """Two numbers with enough digits to show which is larger."""
    digits = 2
    while digits < 8 and f"{distance:.{digits}f}" == f"{threshold:.{digits}f}" and distance != threshold:
        digits += 1
    return f"{distance:.{digits}f} {sign} {threshold:.{digits}f}"
