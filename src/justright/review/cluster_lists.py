"""Which cluster to look at first, and which of its images."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from justright.discovery.predictions import Predictions
from justright.geometry import row_norms
from justright.review.state import ReviewState, Status
from justright.types import Array

ClusterOrder = Literal["largest", "uncertain", "name"]
ImageOrder = Literal["central", "outlying", "uncertain"]
IMAGE_ORDERS: tuple[ImageOrder, ...] = get_args(ImageOrder)

REMEMBERED = 64
"""Clusters whose order of images is kept ready."""


@dataclass(frozen=True)
class ClusterSummary:
    """A cluster in a line: its mean confidence tells how certain it is."""

    cluster: int
    name: str
    kind: str
    n_images: int
    confidence: float
    status: Status


class ClusterLists:
    """Clusters and their images in the order to look at them, for a state that moves on.

    `features` is None where the run has none: confidence then stands in for similarity.
    """

    def __init__(self, state: ReviewState, predictions: Predictions, features: Float[Array, "images dim"] | None):
        self.state = state
        self.features = features
        # an image that looks like no category is the least certain of all
        self.confidence = np.where(predictions.is_neither, 0.0, predictions.confidence).astype(np.float32)
        self._orders: OrderedDict[tuple[int, int, str], Int[Array, " rows"]] = OrderedDict()
        self._covers: dict[tuple[int, int], int] = {}
        self._centroids: dict[int, tuple[int, Float[Array, " dim"]]] = {}
        self._sizes: tuple[int, Int[Array, " groups"], Float[Array, " groups"]] | None = None

    def sizes(self) -> tuple[Int[Array, " groups"], Float[Array, " groups"]]:
        """Images and mean confidence of every cluster number, 0 for one without images."""
        if self._sizes is None or self._sizes[0] != self.state.seq:
            place, n = self.state.group + 1, self.state.n_groups + 1  # REJECTED, which is -1, goes first
            count = np.bincount(place, minlength=n)
            total = np.bincount(place, self.confidence, minlength=n)
            self._sizes = (self.state.seq, count[1:], (total / np.maximum(count, 1))[1:])
        return self._sizes[1], self._sizes[2]

    def alive(self) -> list[int]:
        """The clusters that have images, ascending."""
        return np.flatnonzero(self.sizes()[0]).tolist()

    def summary(self, cluster: int) -> ClusterSummary:
        """One cluster."""
        count, confidence = self.sizes()
        label = self.state.labels[cluster]
        status = self.state.status(cluster)
        return ClusterSummary(cluster, label.name, label.kind, int(count[cluster]), float(confidence[cluster]), status)

    def clusters(self, order: ClusterOrder = "largest", status: Status | None = None, search: str = "") -> list[int]:
        """Clusters that have images, in order; `status` and `search` choose from them."""
        count, confidence = self.sizes()
        names = {cluster: self.state.labels[cluster].name.casefold() for cluster in self.alive()}
        key: dict[ClusterOrder, Callable[[int], Any]] = {
            "largest": lambda cluster: (-count[cluster], cluster),
            "uncertain": lambda cluster: (confidence[cluster], cluster),
            "name": lambda cluster: (names[cluster], cluster),
        }
        words = search.casefold().split()
        chosen = [cluster for cluster, name in names.items() if all(word in name for word in words)]
        if status:
            chosen = [cluster for cluster in chosen if self.state.status(cluster) == status]
        return sorted(chosen, key=key[order])

    def near(self, cluster: int, rows: list[int], search: str = "") -> list[int]:
        """Other clusters, those most similar to these images of a cluster first, or to all of them if none is given."""
        others = [each for each in self.clusters(search=search) if each != cluster]
        if self.features is None or not others:
            return others
        given = np.array(rows, dtype=np.int64) if rows else self.state.rows_of(cluster)
        similarity = np.stack([self.centroid(each) for each in others]) @ _unit(self.features[given]).mean(axis=0)
        return [others[place] for place in np.argsort(-similarity, kind="stable")]

    def centroid(self, cluster: int) -> Float[Array, " dim"]:
        """The mean direction of a cluster, of length 1."""
        key = self.state.changed_at(cluster)
        if self._centroids.get(cluster, (-1, None))[0] != key:
            assert self.features is not None
            mean = _unit(self.features[self.state.rows_of(cluster)]).mean(axis=0, keepdims=True)
            self._centroids[cluster] = (key, _unit(mean)[0])
        return self._centroids[cluster][1]

    def images(self, cluster: int, order: ImageOrder) -> Int[Array, " rows"]:
        """The images of a cluster, those to look at first in front; ties in the order of the run."""
        key = (cluster, self.state.changed_at(cluster), order)
        if key not in self._orders:
            rows = self.state.rows_of(cluster)
            by = self.confidence[rows] if order == "uncertain" else self._similarity(rows)
            self._orders[key] = rows[np.argsort(-by if order == "central" else by, kind="stable")]
            if len(self._orders) > REMEMBERED:
                self._orders.popitem(last=False)
        self._orders.move_to_end(key)
        return self._orders[key]

    def cover(self, cluster: int) -> int:
        """The most central image of a cluster."""
        key = (cluster, self.state.changed_at(cluster))
        if key not in self._covers:
            rows = self.state.rows_of(cluster)
            self._covers[key] = int(rows[np.argmax(self._similarity(rows))])
        return self._covers[key]

    def _similarity(self, rows: Int[Array, " rows"]) -> Float[Array, " rows"]:
        """Cosine similarity of each image to the centroid of them all; confidence where there are no features."""
        if self.features is None or not len(rows):
            return self.confidence[rows]
        x = _unit(self.features[rows])
        return x @ x.mean(axis=0)


def _unit(x: Float[Array, "rows dim"]) -> Float[Array, "rows dim"]:
    """Rows of length 1; one of zeros stays as it is: an image without a direction is still to be looked at."""
    x = np.asarray(x, dtype=np.float32)
    return x / np.maximum(row_norms(x), 1e-12)[:, None]
