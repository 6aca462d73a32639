"""The earth mover's distance against a general linear program (scipy's HiGHS, sparse constraints).

Run: PYTHONPATH=src python benchmarks/bench_emd.py
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from justright.geometry import emd, euclidean_distance


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


def timed(work: Callable[[], float], rounds: int) -> tuple[float, float]:
    best, value = float("inf"), 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        value = work()
        best = min(best, time.perf_counter() - start)
    return best, value


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200, 400])
    args = options.parse_args()
    rng = np.random.default_rng(0)
    emd(np.ones((2, 2)))  # loads POT
    print(f"load {os.getloadavg()[0]:.1f}")
    for n in args.sizes:
        distance = euclidean_distance(rng.normal(size=(n, 64)), rng.normal(size=(n // 2, 64)))
        masses = rng.integers(1, 50, n).astype(float), rng.integers(1, 50, n // 2).astype(float)
        quick, ours = timed(lambda: emd(distance, *masses), rounds=7)  # noqa: B023
        slow, theirs = timed(lambda: linear_program(distance, *masses), rounds=1)  # noqa: B023
        print(
            f"{n} x {n // 2}: emd {quick:.4f} s, linear program {slow:.3f} s, ratio {slow / quick:.0f}, "
            f"values differ by {abs(ours - theirs):.1e}"
        )


if __name__ == "__main__":
    main()
