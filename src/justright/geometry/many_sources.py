"""The optimal flow from many sources to few sinks: most sources send all they have to one sink, and are left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.geometry.rows import CHUNK_ROWS
from justright.utils.types import Array

SAMPLED = 8
"""One in so many sources is in the small problem whose prices say where the others go."""
SHARE = 0.1
"""Sources that a sink might win from others at first, as a share of those it has on average."""
FULL = 0.9
"""Sources that are left out fill at most so much of a sink: every sink keeps a part in the problem, and a price."""
TOLERANCE = 1e-10
"""Smaller improvements, as a share of the largest distance, are rounding of the solver."""

PerSource = Float[Array, " source"]
PerSink = Float[Array, " sink"]
Pairs = Float[Array, "source sink"]  # distances, or flows, from each source to each sink
SinkOfSource = Int[Array, " source"]
SourceFlags = Bool[Array, " source"]

Solver = Callable[[Array, Array, Array], tuple[Array, Array]]
"""From masses of sources, masses of sinks and distances to the optimal flow and the prices of the sinks."""


def flow_from_many(solve: Solver, a: PerSource, b: PerSink, distance: Pairs) -> Pairs:
    """The optimal flow, as `solve` would give it for all sources at once. All masses are positive.

    A flow is optimal if and only if sinks have prices v so that every source sends only where d_ij - v_j is least. With
    the prices of a sample, sources that clearly prefer one sink are sent there, and the problem of the others is
    solved. Its prices are then held against every source: those that would now rather send elsewhere join the problem,
    which is solved again, until there are none.
    """
    n, tolerance = len(a), TOLERANCE * distance.max()
    _, v = solve(a[::SAMPLED] / a[::SAMPLED].sum(), b, distance[::SAMPLED])
    nearest, price, margin = _choices(distance, v)
    is_open = _contested(distance, v, nearest, price)
    while True:
        is_open |= _overfull(a, b, nearest, margin, is_open)
        rows, left_out = np.flatnonzero(is_open), np.flatnonzero(~is_open)
        mass, rest = a[rows].sum(), b - np.bincount(nearest[left_out], a[left_out], len(b))
        k, v = solve(a[rows] / mass, rest / rest.sum(), distance[rows])
        _, price, _ = _choices(distance, v)
        would_leave = ~is_open & (distance[np.arange(n), nearest] - v[nearest] > price + tolerance)
        if not would_leave.any():
            whole = np.zeros(distance.shape)
            whole[rows], whole[left_out, nearest[left_out]] = mass * k, a[left_out]
            return whole
        is_open |= would_leave


def _choices(distance: Pairs, v: PerSink) -> tuple[SinkOfSource, PerSource, PerSource]:
    """At prices v: the sink that each source prefers, what it costs, and how much less that is than any other."""
    nearest, price, margin = np.empty(len(distance), np.int64), np.empty(len(distance)), np.empty(len(distance))
    for start in range(0, len(distance), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        cost = distance[rows] - v
        two = np.partition(cost, 1, axis=1)
        nearest[rows], price[rows], margin[rows] = cost.argmin(axis=1), two[:, 0], two[:, 1] - two[:, 0]
    return nearest, price, margin


def _contested(distance: Pairs, v: PerSink, nearest: SinkOfSource, price: PerSource) -> SourceFlags:
    """For each sink those of other sinks' sources that would lose least by it."""
    n, m = distance.shape
    n_each, is_contested = max(1, int(SHARE * n / m)), np.zeros(n, bool)
    for sink in range(m):
        loss = np.where(nearest == sink, np.inf, distance[:, sink] - v[sink] - price)
        is_contested[np.argpartition(loss, n_each - 1)[:n_each]] = True
    return is_contested


def _overfull(a: PerSource, b: PerSink, nearest: SinkOfSource, margin: PerSource, is_open: SourceFlags) -> SourceFlags:
    """Sources that a sink has no more room for, beside those that prefer it more clearly."""
    is_over = np.zeros(len(a), bool)
    rows = np.flatnonzero(~is_open)
    rows = rows[np.lexsort((-margin[rows], nearest[rows]))]  # by sink, the most decided first
    total = np.cumsum(a[rows])
    starts = np.searchsorted(nearest[rows], np.arange(len(b)))
    before = np.concatenate([[0.0], total])[starts]  # what went to the sinks before
    is_over[rows] = total - before[nearest[rows]] > FULL * b[nearest[rows]]
    return is_over
