"""The order in which to review clusters and their images."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from justright.discovery.predictions import Predictions
from justright.geometry import unit_rows
from justright.review.actions import Move
from justright.review.relabel import Relabel
from justright.review.state import REJECTED, ReviewState, Status
from justright.utils.types import Array

N_CLICKS = 3  # for the action on a cluster: the command, its destination, keep and next (v or m, Enter, k)
ClusterOrder = Literal["corrections", "largest", "name"]
ImageOrder = Literal["uncertain", "central", "outlying"]
Sizes = tuple[Int[Array, " groups"], Float[Array, " groups"]]
Center = tuple[int, Float[Array, " dim"]]


def corrections_per_click(
    doubt: Float[Array, " images"], cluster: Int[Array, " images"], n_clusters: int
) -> Float[Array, " clusters"]:
    """Expected corrections per click of each cluster, 0 for one without images.

    Keys count as clicks. One click goes to an image, one more selects a wrong one, and N_CLICKS act on the selection.
    e is the doubt of the images of a cluster, 1 - confidence, in descending order. Looking at the first m of n images
    brings sum_{i <= m} e_i corrections. An action on all images, such as a merge, corrects the wrong ones and makes the
    right ones wrong.

        max( max_m  sum_{i <= m} e_i / (N_CLICKS + m + sum_{i <= m} e_i),  sum_{i <= n} (e_i - (1 - e_i)) / N_CLICKS )
    """
    order = np.lexsort((-doubt, cluster))
    e, own = doubt[order].astype(np.float64), cluster[order]
    start = np.searchsorted(own, np.arange(n_clusters))
    total = np.concatenate([[0.0], np.cumsum(e)])
    sums = total[1:] - total[start[own]]
    m = np.arange(len(e)) - start[own] + 1
    payoff = np.zeros(n_clusters)
    np.maximum.at(payoff, own, sums / (N_CLICKS + m + sums))
    n_images = np.bincount(cluster, minlength=n_clusters)
    whole = 2 * np.bincount(cluster, doubt, minlength=n_clusters) - n_images
    return np.maximum(payoff, whole / N_CLICKS)


class ClusterLists:
    """Clusters and their images in the order to review them, for the current state.

    features: None if the run has none; confidence then replaces similarity.
    """

    def __init__(self, state: ReviewState, predictions: Predictions, features: Float[Array, "images dim"] | None):
        self.state = state
        self.features = features
        # an image unlike all categories is the least certain
        self.confidence = np.where(predictions.is_neither, 0.0, predictions.confidence).astype(np.float32)
        self.predictions = predictions
        # with the number of the last action (on the cluster) that they were computed after
        self._sizes: tuple[int, Sizes] | None = None
        self._centers: dict[int, tuple[int, Center]] = {}

    def sizes(self) -> Sizes:
        """Number of images of each cluster, and the mean confidence of those not labeled before the run, else 1."""
        if self._sizes is None or self._sizes[0] != self.state.seq:
            place, n = self.state.group + 1, self.state.n_groups + 1  # REJECTED, which is -1, goes first
            count = np.bincount(place, minlength=n)
            is_open = ~self.predictions.is_given
            n_open = np.bincount(place[is_open], minlength=n)
            total = np.bincount(place[is_open], self.predictions.confidence[is_open], minlength=n)
            confidence = np.where(n_open, total / np.maximum(n_open, 1), 1.0)
            self._sizes = self.state.seq, (count[1:], confidence[1:])
        return self._sizes[1]

    def center(self, cluster: int) -> Center:
        """The most central image of a cluster, and the direction of its centroid."""
        changed_at = self.state.changed_at(cluster)
        if cluster not in self._centers or self._centers[cluster][0] != changed_at:
            rows = self.state.rows_of(cluster)
            similarity, centroid = self._similarity(rows)
            self._centers[cluster] = changed_at, (int(rows[similarity.argmax()]), unit_rows(centroid[None])[0])
        return self._centers[cluster][1]

    def alive(self) -> list[int]:
        """The clusters that have images, ascending."""
        return np.flatnonzero(self.sizes()[0]).tolist()

    def summary(self, cluster: int) -> dict[str, Any]:
        """A cluster for the list; `cover` is its most central image."""
        n_images, confidence = self.sizes()
        label = self.state.labels[cluster]
        return {"cluster": cluster, "name": label.name, "kind": label.kind, "n": int(n_images[cluster]),
                "cover": self.center(cluster)[0], "confidence": round(float(confidence[cluster]), 4),
                "status": self.state.status(cluster)}  # fmt: skip

    def clusters(
        self, order: ClusterOrder = "corrections", status: Status | None = None, search: str = ""
    ) -> list[int]:
        """Clusters with images, in order, filtered by `status` and `search`.

        "corrections": the most expected corrections per click first, kept and rejected clusters last.
        """
        names = {cluster: self.state.labels[cluster].name.casefold() for cluster in self.alive()}
        words = search.casefold().split()
        chosen = [cluster for cluster, name in names.items() if all(word in name for word in words)]
        if status:
            chosen = [cluster for cluster in chosen if self.state.status(cluster) == status]
        if order == "name":
            return sorted(chosen, key=lambda cluster: (names[cluster], cluster))
        by = self.sizes()[0] if order == "largest" else self._payoff()
        return sorted(chosen, key=lambda cluster: (-by[cluster], cluster))

    def near(self, cluster: int, rows: list[int], search: str = "") -> list[int]:
        """Other clusters, the most similar to these images first (to all images of the cluster if none are given)."""
        others = [each for each in self.clusters("largest", search=search) if each != cluster]
        given = np.array(rows, dtype=np.int64) if rows else self.state.rows_of(cluster)
        if self.features is None or not others or not len(given):
            return others
        centroids = np.stack([self.center(each)[1] for each in others])
        similarity = centroids @ unit_rows(self.features[given]).mean(axis=0)
        return [others[place] for place in np.argsort(-similarity, kind="stable")]

    def images(self, cluster: int, order: ImageOrder) -> Int[Array, " rows"]:
        """The images of a cluster in this order; ties in the order of the run."""
        rows = self.state.rows_of(cluster)
        if order == "uncertain":
            return rows[np.argsort(-self._doubt()[rows], kind="stable")]
        similarity = self._similarity(rows)[0]
        return rows[np.argsort(-similarity if order == "central" else similarity, kind="stable")]

    def _doubt(self) -> Float[Array, " images"]:
        """How likely each image is wrong; 0 for images that a reviewer moved to their cluster."""
        doubt = 1 - self.confidence
        for entry in self.state.entries:
            if isinstance(entry.line.action, Move | Relabel) and not self.state.undone.get(entry.line.seq):
                for moved in entry.change.moved:
                    doubt[moved.rows] = 0.0
        return doubt

    def _payoff(self) -> Float[Array, " groups"]:
        """Expected corrections per click; -1 for clusters that were kept or rejected."""
        is_in = self.state.group != REJECTED
        payoff = corrections_per_click(self._doubt()[is_in], self.state.group[is_in], self.state.n_groups)
        done = [cluster for cluster in self.state.opinions if self.state.status(cluster) in ("kept", "rejected")]
        payoff[done] = -1.0
        return payoff

    def _similarity(self, rows: Int[Array, " rows"]) -> tuple[Float[Array, " rows"], Float[Array, " dim"]]:
        """Similarity of each image to the centroid of all, and the centroid; without features the confidence."""
        if self.features is None or not len(rows):
            return self.confidence[rows], np.zeros(0)
        x = unit_rows(self.features[rows])
        centroid = x.mean(axis=0)
        return x @ centroid, centroid
