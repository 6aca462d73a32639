"""Which cluster to look at first, and which of its images."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from justright.discovery.predictions import Predictions
from justright.geometry import unit_rows
from justright.review.actions import Move
from justright.review.state import REJECTED, ReviewState, Status
from justright.utils.types import Array

N_CLICKS = 3  # for what was found in a cluster: the action, where its images go, keep and go on (v or m, Enter, k)


def corrections_per_click(
    doubt: Float[Array, " images"], cluster: Int[Array, " images"], n_clusters: int
) -> Float[Array, " clusters"]:
    """Expected corrections per click of each cluster, 0 for one without images.

    Keys count as clicks. To go to an image takes one, to select a wrong one another, and N_CLICKS do something about
    those selected. With e the doubt of the images of a cluster, 1 - confidence, in descending order, looking at the
    first m of n brings sum_{i <= m} e_i corrections. Or one action is about all images, such as a merge: it corrects
    what was wrong, and what was right is wrong then.

        max( max_m  sum_{i <= m} e_i / (N_CLICKS + m + sum_{i <= m} e_i),  sum_{i <= n} (e_i - (1 - e_i)) / N_CLICKS )
    """
    order = np.lexsort((-doubt, cluster))
    e, home = doubt[order].astype(np.float64), cluster[order]
    start = np.searchsorted(home, np.arange(n_clusters))
    total = np.concatenate([[0.0], np.cumsum(e)])
    sums = total[1:] - total[start[home]]
    m = np.arange(len(e)) - start[home] + 1
    found = np.zeros(n_clusters)
    np.maximum.at(found, home, sums / (N_CLICKS + m + sums))
    n_images = np.bincount(cluster, minlength=n_clusters)
    whole = 2 * np.bincount(cluster, doubt, minlength=n_clusters) - n_images
    return np.maximum(found, whole / N_CLICKS)


ClusterOrder = Literal["corrections", "largest", "name"]
ImageOrder = Literal["uncertain", "central", "outlying"]

REMEMBERED = 64  # clusters whose order of images is kept ready


class ClusterLists:
    """Clusters and their images in the order to look at them, for a state that moves on.

    `features` is None where the run has none: confidence then stands in for similarity.
    """

    def __init__(self, state: ReviewState, predictions: Predictions, features: Float[Array, "images dim"] | None):
        self.state = state
        self.features = features
        # an image that looks like no category is the least certain of all
        self.confidence = np.where(predictions.is_neither, 0.0, predictions.confidence).astype(np.float32)
        self.is_given = predictions.is_given
        # computed once for a cluster as it is: all take the last action that changed it, or any, as an argument
        self._sizes = lru_cache(1)(self._count)
        self._doubts = lru_cache(1)(self._doubt)
        self._payoffs = lru_cache(1)(self._payoff)
        self._ordered = lru_cache(REMEMBERED)(self._order)
        self._middles = lru_cache(None)(self._middle)

    def sizes(self) -> tuple[Int[Array, " groups"], Float[Array, " groups"]]:
        """Images of every cluster number, and the mean confidence of those whose label was not given, else 1."""
        return self._sizes(self.state.seq)

    def alive(self) -> list[int]:
        """The clusters that have images, ascending."""
        return np.flatnonzero(self.sizes()[0]).tolist()

    def summary(self, cluster: int) -> dict[str, Any]:
        """A cluster in a line: its mean confidence tells how certain it is, `cover` is its most central image."""
        count, confidence = self.sizes()
        label, (cover, _) = self.state.labels[cluster], self._middles(cluster, self.state.changed_at(cluster))
        return {"cluster": cluster, "name": label.name, "kind": label.kind, "n": int(count[cluster]), "cover": cover,
                "confidence": round(float(confidence[cluster]), 4), "status": self.state.status(cluster)}  # fmt: skip

    def clusters(
        self, order: ClusterOrder = "corrections", status: Status | None = None, search: str = ""
    ) -> list[int]:
        """Clusters that have images, in order; `status` and `search` choose from them.

        By corrections: those first that bring the most per click, then those that were kept or rejected already.
        """
        names = {cluster: self.state.labels[cluster].name.casefold() for cluster in self.alive()}
        words = search.casefold().split()
        chosen = [cluster for cluster, name in names.items() if all(word in name for word in words)]
        if status:
            chosen = [cluster for cluster in chosen if self.state.status(cluster) == status]
        by = names if order == "name" else -(self.sizes()[0] if order == "largest" else self._payoffs(self.state.seq))
        return sorted(chosen, key=lambda cluster: (by[cluster], cluster))

    def near(self, cluster: int, rows: list[int], search: str = "") -> list[int]:
        """Other clusters, those most similar to these images of a cluster first, or to all of them if none is given."""
        others = [each for each in self.clusters("largest", search=search) if each != cluster]
        given = np.array(rows, dtype=np.int64) if rows else self.state.rows_of(cluster)
        if self.features is None or not others or not len(given):
            return others
        centroids = np.stack([self._middles(each, self.state.changed_at(each))[1] for each in others])
        similarity = centroids @ unit_rows(self.features[given]).mean(axis=0)
        return [others[place] for place in np.argsort(-similarity, kind="stable")]

    def images(self, cluster: int, order: ImageOrder) -> Int[Array, " rows"]:
        """The images of a cluster, those to look at first in front; ties in the order of the run."""
        return self._ordered(cluster, self.state.changed_at(cluster), order)

    def _count(self, _: int) -> tuple[Int[Array, " groups"], Float[Array, " groups"]]:
        place, n = self.state.group + 1, self.state.n_groups + 1  # REJECTED, which is -1, goes first
        count = np.bincount(place, minlength=n)
        n_open = np.bincount(place[~self.is_given], minlength=n)
        total = np.bincount(place[~self.is_given], self.confidence[~self.is_given], minlength=n)
        return count[1:], np.where(n_open, total / np.maximum(n_open, 1), 1.0)[1:]

    def _doubt(self, _: int) -> Float[Array, " images"]:
        """How likely it is that an image has to be corrected; not one that a person has put where it is."""
        doubt = 1 - self.confidence
        for entry in self.state.entries:
            if isinstance(entry.line.action, Move) and not self.state.undone.get(entry.line.seq):
                doubt[entry.line.action.rows] = 0.0
        return doubt

    def _payoff(self, seq: int) -> Float[Array, " groups"]:
        is_in = self.state.group != REJECTED
        found = corrections_per_click(self._doubts(seq)[is_in], self.state.group[is_in], self.state.n_groups)
        done = [cluster for cluster in self.state.opinions if self.state.status(cluster) in ("kept", "rejected")]
        found[done] = -1.0
        return found

    def _order(self, cluster: int, _: int, order: ImageOrder) -> Int[Array, " rows"]:
        rows = self.state.rows_of(cluster)
        by = -self._doubts(self.state.seq)[rows] if order == "uncertain" else self._similarity(rows)[0]
        return rows[np.argsort(-by if order == "central" else by, kind="stable")]

    def _middle(self, cluster: int, _: int) -> tuple[int, Float[Array, " dim"]]:
        """The most central image of a cluster, and the direction of its centroid."""
        rows = self.state.rows_of(cluster)
        similarity, centroid = self._similarity(rows)
        return int(rows[similarity.argmax()]), unit_rows(centroid[None])[0]

    def _similarity(self, rows: Int[Array, " rows"]) -> tuple[Float[Array, " rows"], Float[Array, " dim"]]:
        """Similarity of each image to the centroid of them all, and that; confidence where there are no features."""
        if self.features is None or not len(rows):
            return self.confidence[rows], np.zeros(0)
        x = unit_rows(self.features[rows])
        centroid = x.mean(axis=0)
        return x @ centroid, centroid
