"""Distances between centroids, lower is closer, and optimal transport between two sets of them."""

from __future__ import annotations

import os
import sys
from functools import cache
from types import ModuleType

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.geometry.rows import CHUNK_ROWS, unit_rows
from justright.utils.errors import DegenerateError
from justright.utils.types import Array

MAX_ITERATIONS = 100_000_000  # effectively none: a flow cut short would be no optimum
MANY_SOURCES = 20_000
"""From this number on, and with few sinks, most sources need not be part of the problem (`flow_from_many`)."""
SAMPLED = 8
"""One in this many sources is in the sample that gives the first prices."""
SHARE = 0.1
"""Sources of other sinks in the first problem of a sink, as a share of its average number of sources."""
FULL = 0.9
"""Share of a sink that assigned sources may fill: every sink stays in the problem and has a price."""
TOLERANCE = 1e-10
"""Smaller improvements, as a share of the largest distance, are rounding of the solver."""

PerSource = Float[Array, " source"]
PerSink = Float[Array, " sink"]
Pairs = Float[Array, "source sink"]  # distances, or flows, from each source to each sink
SinkOfSource = Int[Array, " source"]
SourceFlags = Bool[Array, " source"]


def euclidean_distance(a: Float[Array, "a dim"], b: Float[Array, "b dim"]) -> Float[Array, "a b"]:
    """d_ij = |a_i - b_j|_2, the ground distance of the earth mover and the default of Tab. A7."""
    # Distances ignore where the origin lies; placing it amid the data keeps the expanded square accurate.
    origin = (a.sum(axis=0, dtype=np.float64) + b.sum(axis=0, dtype=np.float64)) / (len(a) + len(b))
    a, b = a - origin, b - origin
    square = np.einsum("id,id->i", a, a)[:, None] + np.einsum("jd,jd->j", b, b) - 2 * (a @ b.T)
    return np.sqrt(np.maximum(square, 0.0))


def cosine_distance(a: Float[Array, "a dim"], b: Float[Array, "b dim"]) -> Float[Array, "a b"]:
    """d_ij = 1 - cos(a_i, b_j)."""
    cosines = unit_rows(a.astype(np.float64)) @ unit_rows(b.astype(np.float64)).T
    return np.maximum(1.0 - cosines, 0.0)


DISTANCES = {
    "euclidean": euclidean_distance,
    "cosine": cosine_distance,
    # Tab. A7's third row: features are brought to length 1 before they are averaged, then distances are Euclidean.
    "l2": euclidean_distance,
}


def flow(distance: Pairs, source_mass: PerSource | None = None, target_mass: PerSink | None = None) -> Pairs:
    """The optimal flow k between two distributions, each brought to total mass 1.

    k = argmin_k sum_ij k_ij d_ij   with   k >= 0,  sum_j k_ij = source_mass_i,  sum_i k_ij = target_mass_j.

    No mass given means equal masses. Solved exactly, by POT's network simplex [1]; see `flow_from_many`.
    [1] R. Flamary et al., POT: Python Optimal Transport, JMLR 22, 2021.
    """
    a, b = _masses(source_mass, distance.shape[0]), _masses(target_mass, distance.shape[1])
    if len(a) == 1 or len(b) == 1:
        return np.outer(a, b)  # the only possible flow
    if len(a) >= MANY_SOURCES and len(a) >= 20 * len(b) and a.all() and b.all():
        return flow_from_many(a, b, distance)
    return _solve(a, b, distance)[0]


def emd(distance: Pairs, source_mass: PerSource | None = None, target_mass: PerSink | None = None) -> float:
    """The earth mover's distance between two datasets. Eq. 8, and Eq. 14 where the source is D^l with D^u_0.

    EMD = sum_ij k_ij d_ij / sum_ij k_ij,  k the optimal flow.
    """
    k = flow(distance, source_mass, target_mass)
    return float((k * distance).sum() / k.sum())


def distance_to_target(distance: Pairs, k: Pairs) -> PerSource:
    """The distance of each source centroid to the target, under a flow k. Eq. 15.

    d_i = sum_j k_ij d_ij / sum_j k_ij

    A row without flow, which positive masses exclude, is infinitely far.
    """
    sent = k.sum(axis=1)
    cost = (k * distance).sum(axis=1)
    return np.divide(cost, sent, out=np.full(len(sent), np.inf), where=sent > 0)


def domain_similarity(
    distance: Pairs, source_mass: PerSource | None = None, target_mass: PerSink | None = None, gamma: float = 0.01
) -> float:
    """The similarity of two datasets. Eq. 9.

    SIM = exp(-gamma * EMD)
    """
    return float(np.exp(-gamma * emd(distance, source_mass, target_mass)))


def flow_from_many(a: PerSource, b: PerSink, distance: Pairs) -> Pairs:
    """The optimal flow, as `_solve` computes it, for many sources and few sinks. All masses are positive.

    A flow is optimal if and only if sinks have prices v such that every source sends only where d_ij - v_j is least.
    At the prices of a sample, sources that clearly prefer one sink are assigned to it, and the problem of the other
    sources is solved. Assigned sources that prefer another sink at the new prices join the problem, which is solved
    again until there are none.
    """
    n, tolerance = len(a), TOLERANCE * distance.max()
    _, v = _solve(a[::SAMPLED] / a[::SAMPLED].sum(), b, distance[::SAMPLED])
    nearest, price, margin = _choices(distance, v)
    is_open = _contested(distance, v, nearest, price)
    while True:
        is_open |= _overfull(a, b, nearest, margin, is_open)
        rows, left_out = np.flatnonzero(is_open), np.flatnonzero(~is_open)
        mass, rest = a[rows].sum(), b - np.bincount(nearest[left_out], a[left_out], len(b))
        k, v = _solve(a[rows] / mass, rest / rest.sum(), distance[rows])
        _, price, _ = _choices(distance, v)
        prefers_other = ~is_open & (distance[np.arange(n), nearest] - v[nearest] > price + tolerance)
        if not prefers_other.any():
            whole = np.zeros(distance.shape)
            whole[rows], whole[left_out, nearest[left_out]] = mass * k, a[left_out]
            return whole
        is_open |= prefers_other


def _choices(distance: Pairs, v: PerSink) -> tuple[SinkOfSource, PerSource, PerSource]:
    """At prices v: the sink each source prefers, its cost, and the margin to the second best."""
    nearest, price, margin = np.empty(len(distance), np.int64), np.empty(len(distance)), np.empty(len(distance))
    for start in range(0, len(distance), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        cost = distance[rows] - v
        two = np.partition(cost, 1, axis=1)
        nearest[rows], price[rows], margin[rows] = cost.argmin(axis=1), two[:, 0], two[:, 1] - two[:, 0]
    return nearest, price, margin


def _contested(distance: Pairs, v: PerSink, nearest: SinkOfSource, price: PerSource) -> SourceFlags:
    """For each sink, the sources of other sinks that would lose least by moving to it."""
    n, m = distance.shape
    n_each, is_contested = max(1, int(SHARE * n / m)), np.zeros(n, bool)
    for sink in range(m):
        loss = np.where(nearest == sink, np.inf, distance[:, sink] - v[sink] - price)
        is_contested[np.argpartition(loss, n_each - 1)[:n_each]] = True
    return is_contested


def _overfull(a: PerSource, b: PerSink, nearest: SinkOfSource, margin: PerSource, is_open: SourceFlags) -> SourceFlags:
    """Sources beyond the capacity of their sink, which keeps those that prefer it most clearly."""
    is_over = np.zeros(len(a), bool)
    rows = np.flatnonzero(~is_open)
    rows = rows[np.lexsort((-margin[rows], nearest[rows]))]  # by sink, the largest margin first
    total = np.cumsum(a[rows])
    starts = np.searchsorted(nearest[rows], np.arange(len(b)))
    before = np.concatenate([[0.0], total])[starts]  # mass of the sinks before
    is_over[rows] = total - before[nearest[rows]] > FULL * b[nearest[rows]]
    return is_over


def _solve(a: PerSource, b: PerSink, distance: Pairs) -> tuple[Pairs, PerSink]:
    """The optimal flow and the dual prices of the sinks, which are the centroids of the target."""
    k, log = _import_ot().emd(a, b, np.ascontiguousarray(distance, np.float64), numItermax=MAX_ITERATIONS, log=True)
    if log["warning"] is not None:
        raise DegenerateError(f"optimal transport stopped: {log['warning']}", expected="finite distances")
    return np.asarray(k), np.asarray(log["v"])


def _masses(mass: Float[Array, " points"] | None, n_points: int) -> Float[Array, " points"]:
    if mass is None:
        return np.full(n_points, 1.0 / n_points)
    if not np.all(np.isfinite(mass)) or np.any(mass < 0) or mass.sum() <= 0:
        raise DegenerateError(
            f"masses from {mass.min():g} to {mass.max():g}", expected="masses of at least 0, not all of them 0"
        )
    return mass.astype(np.float64) / mass.sum()


@cache
def _import_ot() -> ModuleType:
    # POT imports every array library it finds, torch among them, which takes seconds. Its documented switches skip the
    # libraries that this process has not imported; POT then accepts only numpy arrays in this process.
    backends = {"PYTORCH": "torch", "JAX": "jax", "CUPY": "cupy", "TENSORFLOW": "tensorflow"}
    absent = [f"POT_BACKEND_DISABLE_{name}" for name, module in backends.items() if module not in sys.modules]
    switches = [name for name in absent if name not in os.environ]
    os.environ.update(dict.fromkeys(switches, "1"))
    try:
        import ot
    finally:
        for name in switches:
            del os.environ[name]
    return ot
