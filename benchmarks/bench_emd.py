"""The earth mover's distance against a general linear program (scipy's HiGHS, sparse constraints).

Then many sources and few sinks, as in Bins: a solution that drops most sources against all at once, in CPU time.

Run: PYTHONPATH=src python benchmarks/bench_emd.py
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from measuring import load, timed
from scipy.optimize import linprog

from justright.geometry.transport import _solve, emd, euclidean_distance, flow_from_many


def linear_program(distance: np.ndarray, source_mass: np.ndarray, target_mass: np.ndarray) -> float:
    n, m = distance.shape
    leaves = sp.kron(sp.eye(n), np.ones((1, m)))
    arrives = sp.kron(np.ones((1, n)), sp.eye(m))
    solved = linprog(
        distance.ravel(),
        A_eq=sp.vstack([leaves, arrives]).tocsr(),
        b_eq=np.concatenate([source_mass / source_mass.sum(), target_mass / target_mass.sum()]),
        method="highs",
    )
    return float(solved.fun)


def compare_many(n: int, m: int) -> None:
    rng = np.random.default_rng(0)
    sinks = rng.normal(size=(m, 64))
    sources = sinks[rng.integers(0, m, n)] + rng.normal(size=(n, 64)) * rng.uniform(0.2, 1.0, (n, 1))
    a, b = rng.integers(1, 50, n).astype(float), rng.integers(1, 200, m).astype(float)
    given = a / a.sum(), b / b.sum(), euclidean_distance(sources, sinks)
    _, quick, few = timed(lambda: flow_from_many(*given))
    _, slow, (every, _) = timed(lambda: _solve(*given))
    print(
        f"{n} x {m}: most left out {quick:.1f} s, all at once {slow:.1f} s, ratio {slow / quick:.1f}, "
        f"flows differ by {abs(few - every).max():.0e}"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200, 400])
    options.add_argument("--many", type=int, nargs=2, default=[100_000, 250], help="sources and sinks")
    args = options.parse_args()
    rng = np.random.default_rng(0)
    emd(np.ones((2, 2)))  # loads POT
    print(load())
    for n in args.sizes:
        distance = euclidean_distance(rng.normal(size=(n, 64)), rng.normal(size=(n // 2, 64)))
        masses = rng.integers(1, 50, n).astype(float), rng.integers(1, 50, n // 2).astype(float)
        quick, _, ours = min(timed(lambda: emd(distance, *masses)) for _ in range(7))  # noqa: B023
        slow, _, theirs = timed(lambda: linear_program(distance, *masses))  # noqa: B023
        print(
            f"{n} x {n // 2}: emd {quick:.4f} s, linear program {slow:.3f} s, ratio {slow / quick:.0f}, "
            f"values differ by {abs(ours - theirs):.1e}"
        )
    compare_many(*args.many)


if __name__ == "__main__":
    main()
