from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from justright.geometry import beta_density, to_unit_interval
from justright.utils.errors import DegenerateError

shapes = st.floats(0.5, 12.0)
inside = st.floats(0.001, 0.999)


def eq_11_as_loops(xs, alpha, beta):
    norm = math.gamma(alpha) * math.gamma(beta) / math.gamma(alpha + beta)
    return [x ** (alpha - 1) * (1 - x) ** (beta - 1) / norm for x in xs]


@given(st.lists(inside, min_size=1, max_size=9), shapes, shapes)
def test_agrees_with_eq_11_written_as_loops(xs, alpha, beta):
    assert beta_density(np.array(xs), alpha, beta) == pytest.approx(eq_11_as_loops(xs, alpha, beta), rel=1e-9)


def test_shapes_1_and_1_give_density_1_everywhere():
    assert np.all(beta_density(np.linspace(0, 1, 1001), 1.0, 1.0) == 1.0)


@given(inside, shapes, shapes)
def test_swapped_shapes_mirror_the_density(x, alpha, beta):
    assert beta_density(np.array([x]), alpha, beta) == pytest.approx(
        beta_density(np.array([1 - x]), beta, alpha), rel=1e-9
    )


def test_equal_shapes_give_a_symmetric_density_with_a_central_peak():
    density = beta_density(np.linspace(0, 1, 101), 5.0, 5.0)
    assert density == pytest.approx(density[::-1], rel=1e-12)
    assert density.argmax() == 50
    assert density[[0, -1]].tolist() == [0.0, 0.0]


def test_density_integrates_to_one():
    x = (np.arange(10_000) + 0.5) / 10_000
    assert beta_density(x, 3.0, 7.0).mean() == pytest.approx(1.0, abs=1e-6)


def test_density_is_zero_outside_the_unit_interval():
    assert beta_density(np.array([-0.1, 1.1]), 1.0, 1.0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("clip", [0.0, 0.0, 0.5, 0.5]),
        ("affine", [0.25, 0.5, 0.75, 0.75]),
        ("minmax", [0.0, 0.5, 1.0, 1.0]),
        ("rank", [0.125, 0.375, 0.75, 0.75]),
        ("raw", [-0.5, 0.0, 0.5, 0.5]),
    ],
)
def test_domains_map_cosines_to_the_unit_interval(domain, expected):
    assert to_unit_interval(np.array([-0.5, 0.0, 0.5, 0.5]), domain) == pytest.approx(expected)


def test_domain_target_maps_the_reference_to_one_half():
    found = to_unit_interval(np.array([-0.2, 0.0, 0.2, 0.4, 0.9]), "target", reference=0.4)
    assert found == pytest.approx([0.0, 0.0, 0.25, 0.5, 1.0])
    with pytest.raises(DegenerateError, match=r"similarity of -0\.1"):
        to_unit_interval(np.zeros(2), "target", reference=-0.1)


def test_minmax_of_equal_similarities_raises():
    with pytest.raises(DegenerateError, match=r"all 3 similarities are 0\.2"):
        to_unit_interval(np.full(3, 0.2), "minmax")
