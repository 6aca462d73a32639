"""The earth mover's distance against a general linear program (scipy's HiGHS, sparse constraints).

Run: PYTHONPATH=src python benchmarks/bench_emd.py
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from measuring import load, timed
from scipy.optimize import linprog

from justright.geometry.transport import emd, euclidean_distance


def linear_program(distance: np.ndarray, source_mass: np.ndarray, target_mass: np.ndarray) -> float:
    n, m = distance.shape
    row_sums = sp.kron(sp.eye(n), np.ones((1, m)))
    column_sums = sp.kron(np.ones((1, n)), sp.eye(m))
    solved = linprog(
        distance.ravel(),
        A_eq=sp.vstack([row_sums, column_sums]).tocsr(),
        b_eq=np.concatenate([source_mass / source_mass.sum(), target_mass / target_mass.sum()]),
        method="highs",
    )
    return float(solved.fun)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200, 400])
    args = options.parse_args()
    rng = np.random.default_rng(0)
    emd(np.ones((2, 2)))  # imports POT
    print(load())
    for n in args.sizes:
        distance = euclidean_distance(rng.normal(size=(n, 64)), rng.normal(size=(n // 2, 64)))
        masses = rng.integers(1, 50, n).astype(float), rng.integers(1, 50, n // 2).astype(float)
        fast, _, ours = min(timed(lambda: emd(distance, *masses)) for _ in range(7))  # noqa: B023
        slow, _, theirs = timed(lambda: linear_program(distance, *masses))  # noqa: B023
        print(
            f"{n} x {n // 2}: emd {fast:.4f} s, linear program {slow:.3f} s, ratio {slow / fast:.0f}, "
            f"values differ by {abs(ours - theirs):.1e}"
        )


if __name__ == "__main__":
    main()
