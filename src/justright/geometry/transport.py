"""Distances between centroids, lower is closer, and optimal transport between two sets of them."""

from __future__ import annotations

import os
import sys
from functools import cache
from types import ModuleType

import numpy as np
from jaxtyping import Float

from justright.geometry.rows import unit_rows
from justright.utils.errors import DegenerateError
from justright.utils.types import Array

MAX_ITERATIONS = 100_000_000  # effectively none: a flow cut short would be no optimum

PerSource = Float[Array, " source"]
PerSink = Float[Array, " sink"]
Pairs = Float[Array, "source sink"]  # distances, or flows, from each source to each sink


def euclidean_distance(a: Float[Array, "a dim"], b: Float[Array, "b dim"]) -> Float[Array, "a b"]:
    """d_ij = |a_i - b_j|_2, the ground distance of the earth mover and the default of Tab. A7."""
    from scipy.spatial.distance import cdist  # slow to import

    return cdist(a, b)


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

    Masses are equal by default. Solved exactly, by POT's network simplex [1].
    [1] R. Flamary et al., POT: Python Optimal Transport, JMLR 22, 2021.
    """
    a, b = _masses(source_mass, distance.shape[0]), _masses(target_mass, distance.shape[1])
    if len(a) == 1 or len(b) == 1:
        return np.outer(a, b)  # the only possible flow
    k, log = _import_ot().emd(a, b, np.ascontiguousarray(distance, np.float64), numItermax=MAX_ITERATIONS, log=True)
    if log["warning"] is not None:
        raise DegenerateError(f"optimal transport stopped: {log['warning']}", expected="finite distances")
    return np.asarray(k)


def emd(distance: Pairs, source_mass: PerSource | None = None, target_mass: PerSink | None = None) -> float:
    """The earth mover's distance between two datasets. Eq. 8, and Eq. 14 where the source is D^l with D^u_0.

    EMD = sum_ij k_ij d_ij / sum_ij k_ij,  k the optimal flow.
    """
    k = flow(distance, source_mass, target_mass)
    return float((k * distance).sum() / k.sum())


def distance_to_target(distance: Pairs, k: Pairs) -> PerSource:
    """The distance of each source centroid to the target, under a flow k. Eq. 15.

    d_i = sum_j k_ij d_ij / sum_j k_ij

    A row without flow is infinitely far; with positive masses there is none.
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


def _masses(mass: Float[Array, " points"] | None, n_points: int) -> Float[Array, " points"]:
    return np.full(n_points, 1.0 / n_points) if mass is None else mass.astype(np.float64) / mass.sum()


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
