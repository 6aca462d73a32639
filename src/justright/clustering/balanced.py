"""Each image to a near centroid, with no cluster larger than its share."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.clustering.arrays import like, to_numpy
from justright.clustering.assignment import scores
from justright.types import Array


class BalancedAssignment:
    """The cheapest assignment in which cluster k takes at most capacity_k rows, kept while centroids move.

        min  sum_i ||x_i - c_{label i}||^2    subject to  #{i: label_i = k} <= capacity_k

    solved by an auction up to a thousandth of the mean cost per row, or a ten-thousandth of the highest one. An
    assignment is only taken if it costs less than the last, so the inertia cannot rise.

    Attributes: labels and own, the cluster of each row and its score.
    """

    def __init__(self, x: Float[Any, "rows dim"], norms: Float[Any, " rows"], capacity: Int[Array, " clusters"]):
        self.x = x
        self.norms = norms
        self.capacity = capacity
        self.labels: Any = None
        self.own: Any = None

    def update(self, centroids: Float[Any, "clusters dim"], moved: Int[Array, " moved"]) -> None:
        """Assign anew. Every centroid is looked at: a full cluster passes its change on to all others."""
        xp = array_namespace(self.x)
        score = scores(self.x, centroids)
        row = xp.arange(score.shape[0], device=score.device)
        cost = to_numpy(score + self.norms[:, None]).astype(np.float64)
        labels = like(auction(np.maximum(cost, 0.0), self.capacity), self.x)
        if self.labels is not None:
            before, after = (xp.sum(score[row, each], dtype=xp.float64) for each in (self.labels, labels))
            labels = labels if bool(after < before) else self.labels
        self.labels, self.own = labels, score[row, labels]

    def replace(self, row: int, cluster: int, score: float) -> None:
        """Put one row into a cluster by hand."""
        self.labels[row] = cluster
        self.own[row] = score


def auction(cost: Float[Array, "rows clusters"], capacity: Int[Array, " clusters"]) -> Int[Array, " rows"]:
    """Rows to clusters at nearly the least total cost, at most capacity_k rows in cluster k.

    Every row without a seat bids on the cluster where cost plus price is least, as much as it is better than the
    second, plus a step. A cluster keeps its highest bids; once it is full its price is the lowest of them. The
    total is within (seats * step) of the least (Bertsekas and Castañón, 1989). Prices found with a coarse step are a
    good start for a finer one: without that, crowded clusters would outbid each other for ages.
    """
    n_rows, n_clusters = cost.shape
    if not n_rows:
        return np.zeros(0, dtype=np.int64)
    finest = max(1e-3 * float(cost.min(axis=1).mean()), 1e-4 * float(cost.max()), 1e-12)
    # Rows that cost nothing anywhere take the spare seats, so that every seat is sold and prices can be kept.
    everyone = np.vstack([cost, np.zeros((int(capacity.sum()) - n_rows, n_clusters))])
    price = np.where(capacity > 0, 0.0, np.inf)
    step = max(float(cost.max()) / 4, finest)
    while True:
        seat = _sell(everyone, capacity, price, step)
        if step == finest:
            return seat[:n_rows]
        step = max(step / 5, finest)


def _sell(
    cost: Float[Array, "seats clusters"],
    capacity: Int[Array, " clusters"],
    price: Float[Array, " clusters"],
    step: float,
) -> Int[Array, " seats"]:
    """The cluster in which each row has a seat once nobody waits; raises `price` as it goes."""
    seat = np.full(len(cost), -1)
    bid = np.zeros(len(cost))
    while len(waiting := np.flatnonzero(seat < 0)):
        net = cost[waiting] + price
        at = np.arange(len(waiting))
        best = net.argmin(axis=1)
        first = net[at, best]
        net[at, best] = np.inf
        second = net.min(axis=1)
        gain = np.where(np.isfinite(second), second - first, 0.0)
        bid[waiting] = price[best] + gain + step
        seat[waiting] = best
        # Highest bids first within each cluster that got one; a row beyond the capacity stands up again.
        has_bid = np.zeros(len(price), dtype=bool)
        has_bid[best] = True
        sitting = np.flatnonzero(has_bid[seat])
        sitting = sitting[np.lexsort((-bid[sitting], seat[sitting]))]
        taken = seat[sitting]
        rank = np.arange(len(sitting)) - np.searchsorted(taken, taken)
        is_last = rank == capacity[taken] - 1
        price[taken[is_last]] = bid[sitting[is_last]]
        seat[sitting[rank >= capacity[taken]]] = -1
    return seat
