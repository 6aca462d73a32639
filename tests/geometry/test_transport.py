from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from justright.geometry.transport import (
    cosine_distance,
    distance_to_target,
    domain_similarity,
    emd,
    euclidean_distance,
    flow,
)


def test_euclidean_distance_agrees_with_loops():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    expected = [[math.dist(x, y) for y in b.tolist()] for x in a.tolist()]
    assert euclidean_distance(a, b) == pytest.approx(np.array(expected), abs=1e-12)


def test_small_distances_far_from_the_origin_stay_accurate():
    a = np.array([[1e6, 1e6], [1e6 + 1e-3, 1e6]])
    assert euclidean_distance(a, a)[0, 1] == pytest.approx(1e-3, rel=1e-4)


def test_cosine_distance_ignores_length_and_ranges_from_0_to_2():
    a = np.array([[1.0, 0.0]])
    b = np.array([[5.0, 0.0], [0.0, 0.1], [-2.0, 0.0]])
    assert cosine_distance(a, b) == pytest.approx(np.array([[0.0, 1.0, 2.0]]))


def cost_by_linear_program(distance, source_mass, target_mass):
    """The transport problem as a linear program, solved by scipy."""
    n, m = distance.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    solved = linprog(
        distance.ravel(),
        A_eq=np.concatenate([rows, columns]),
        b_eq=np.concatenate([source_mass / source_mass.sum(), target_mass / target_mass.sum()]),
        method="highs",
    )
    assert solved.success
    return solved.fun


@st.composite
def problems(draw):
    n, m, seed = draw(st.integers(1, 7)), draw(st.integers(1, 7)), draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    distance = rng.random((n, m)) if draw(st.booleans()) else rng.integers(0, 4, (n, m)).astype(float)
    return distance, rng.integers(1, 50, n).astype(float), rng.integers(1, 50, m).astype(float)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_emd_is_the_optimum_of_the_linear_program(problem):
    assert emd(*problem) == pytest.approx(cost_by_linear_program(*problem), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_flow_is_nonnegative_and_moves_every_mass(problem):
    _, source_mass, target_mass = problem
    k = flow(*problem)
    assert k.min() >= 0
    assert k.sum(axis=1) == pytest.approx(source_mass / source_mass.sum(), abs=1e-12)
    assert k.sum(axis=0) == pytest.approx(target_mass / target_mass.sum(), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(problems())
def test_agrees_with_eq_8_and_14_written_as_loops(problem):
    distance, k = problem[0], flow(*problem)
    cost = total = 0.0
    for i in range(distance.shape[0]):
        for j in range(distance.shape[1]):
            cost += k[i, j] * distance[i, j]
            total += k[i, j]
    assert emd(*problem) == pytest.approx(cost / total, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(problems())
def test_agrees_with_eq_15_written_as_loops(problem):
    distance, k = problem[0], flow(*problem)
    expected = []
    for i in range(distance.shape[0]):
        cost = sum(k[i, j] * distance[i, j] for j in range(distance.shape[1]))
        expected.append(cost / sum(k[i, j] for j in range(distance.shape[1])))
    assert distance_to_target(distance, k) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(problems(), st.floats(0.0, 5.0))
def test_agrees_with_eq_9_written_as_loops(problem, gamma):
    expected = math.exp(-gamma * cost_by_linear_program(*problem))
    assert domain_similarity(*problem, gamma=gamma) == pytest.approx(expected, abs=1e-9)


def test_masses_are_normalized_and_equal_by_default():
    distance = np.array([[0.0, 4.0], [2.0, 1.0]])
    assert emd(distance) == emd(distance, np.array([3.0, 3.0]), np.array([7.0, 7.0]))
    assert emd(distance) == pytest.approx((0.0 + 1.0) / 2)


def test_row_without_flow_is_infinitely_far():
    assert distance_to_target(np.ones((2, 1)), np.array([[0.0], [1.0]])).tolist() == [math.inf, 1.0]


def test_emd_does_not_import_torch():
    code = (
        "import os, sys\n"
        "from justright.geometry import emd; import numpy as np\n"
        "assert emd(np.ones((2, 2))) == 1.0 and 'ot' in sys.modules\n"
        "assert 'torch' not in sys.modules and not any(name.startswith('POT_') for name in os.environ)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
