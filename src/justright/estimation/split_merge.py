"""One round of splits and merges."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.clustering import SemiSupKMeans
from justright.estimation.prior import NormalInverseWishart
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED, Array

_MIN_SIZE = 5  # no cluster this small is split and no half this small accepted, as in GPC: it has no shape yet
_N_PROPOSALS = 4
Members = Int[Array, " _"]


@dataclass(eq=False)
class SplitMerge:
    """Proposes and judges splits and merges of clusters of z.

    A split is proposed by 2-means inside a cluster, a merge between a cluster and its nearest one; both are judged by
    log H > 0 (see `NormalInverseWishart.log_joint`), or taken against the odds with probability accept_worse. A
    cluster of a labeled class may lose unlabeled members to a new cluster and take in a new cluster, but its labeled
    images stay together. What was judged once is remembered: late rounds meet mostly clusters they have seen.
    """

    z: Float[Array, "images axes"]
    is_labeled: Bool[Array, " images"]
    niw: NormalInverseWishart
    accept_worse: float
    use_labeled: bool
    seed: int
    _joint: dict[bytes, float] = field(default_factory=dict, init=False)
    _halves: dict[bytes, tuple[Members, Members] | None] = field(default_factory=dict, init=False)

    def centroids(self, labels: Int[Array, " images"], n_classes: int, n_round: int) -> Float[Array, "new axes"]:
        """Where clusters beyond the labeled classes start next; each takes part in one split or merge at most."""
        chance = generator(self.seed, "accept", n_round)
        old: list[Members] = []
        whole: list[Members] = []
        parts: list[Members] = []
        for cluster in range(0 if self.use_labeled else n_classes, int(labels.max()) + 1):
            members = np.flatnonzero(labels == cluster)
            halves = self._split(members)
            if halves and self._is_accepted(self._log_split(*halves), chance):
                # a labeled class is given to the next k-means anyway, only what it lost needs a place
                parts += halves[1:] if cluster < n_classes else halves
            else:
                (old if cluster < n_classes else whole).append(members)
        means = [self.z[members].mean(axis=0) for members in parts + self._merge(old, whole, chance)]
        return np.stack(means) if means else np.zeros((0, self.z.shape[1]))

    def _merge(self, old: list[Members], whole: list[Members], chance: np.random.Generator) -> list[Members]:
        """The clusters `whole` after merges with each other; one that merges into an old cluster is gone."""
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
            if a not in partner and b not in partner and self._is_accepted(log_h, chance):
                partner[a], partner[b] = b, a
        alone = [members for a, members in enumerate(whole) if a not in partner]
        return alone + [np.union1d(whole[a], whole[b]) for a, b in partner.items() if a < b < len(whole)]

    def _split(self, members: Members) -> tuple[Members, Members] | None:
        key = members.tobytes()
        if key not in self._halves:
            self._halves[key] = self._two_means(members)
        return self._halves[key]

    def _two_means(self, members: Members) -> tuple[Members, Members] | None:
        """The best of a few 2-means by log H, or None. Labeled members, if there are any, are all in the first half.

        The one of lowest inertia may do no more than set a few outliers apart, which is no split.
        """
        given = np.where(self.is_labeled[members], 0, UNLABELED)
        if len(members) < 2 * _MIN_SIZE + 2 or (given == UNLABELED).sum() <= _MIN_SIZE:
            return None  # a half would be too small, however it is cut
        found = []
        for attempt in range(_N_PROPOSALS):
            kmeans = SemiSupKMeans(2, n_init=1, normalize=False, seed=self.seed + attempt)
            try:
                half = kmeans.fit(self.z[members], given).labels_
            except DegenerateError:  # no unlabeled members, or all of them are the same point
                return None
            one, other = members[half == 0], members[half == 1]
            if min(len(one), len(other)) > _MIN_SIZE:
                found.append((one, other))
        return max(found, key=lambda halves: self._log_split(*halves), default=None)

    def _log_split(self, one: Members, other: Members) -> float:
        return self._log_joint(one) + self._log_joint(other) - self._log_joint(np.union1d(one, other))

    def _log_joint(self, members: Members) -> float:
        key = members.tobytes()
        if key not in self._joint:
            self._joint[key] = self.niw.log_joint(self.z[members])
        return self._joint[key]

    def _is_accepted(self, log_h: float, chance: np.random.Generator) -> bool:
        return bool(log_h > 0 or (self.accept_worse > 0 and chance.random() < self.accept_worse))
