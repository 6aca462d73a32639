"""`flow_from_many` computes the same flow as one problem with all sources."""

from __future__ import annotations

import numpy as np
import pytest

from justright.geometry import transport
from justright.geometry.transport import _solve as solve
from justright.geometry.transport import euclidean_distance, flow, flow_from_many

KINDS = ["around", "blobs", "all at one sink", "all alike"]


def problem(kind, n=800, m=10, seed=0):
    rng = np.random.default_rng(seed)
    sinks = rng.normal(size=(m, 8))
    places = {
        "around": rng.normal(size=(n, 8)) * rng.uniform(0.2, 2.0, (n, 1)),
        "blobs": sinks[rng.integers(0, m, n)] + 0.3 * rng.normal(size=(n, 8)),
        "all at one sink": sinks[:1] + 0.01 * rng.normal(size=(n, 8)),
        "all alike": np.repeat(sinks[:1], n, axis=0),
    }[kind]
    a, b = rng.integers(1, 50, n).astype(float), rng.integers(1, 200, m).astype(float)
    return a / a.sum(), b / b.sum(), euclidean_distance(places, sinks)


def counting(sizes):
    def counted(a, b, distance):
        sizes.append(len(a))
        return solve(a, b, distance)

    return counted


@pytest.mark.parametrize("kind", KINDS[:3])
def test_flow_equals_that_of_all_sources_at_once(kind):
    given = problem(kind)
    assert flow_from_many(*given) == pytest.approx(solve(*given)[0], abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_all_mass_moves_and_no_flow_is_cheaper(kind):
    a, b, distance = problem(kind)
    k = flow_from_many(a, b, distance)
    assert k.min() >= 0
    assert k.sum(axis=1) == pytest.approx(a, abs=1e-12)
    assert k.sum(axis=0) == pytest.approx(b, abs=1e-12)
    assert (k * distance).sum() == pytest.approx((solve(a, b, distance)[0] * distance).sum(), abs=1e-12)


def test_most_sources_are_never_in_the_problem(monkeypatch):
    sizes = []
    monkeypatch.setattr(transport, "_solve", counting(sizes))
    flow_from_many(*problem("blobs", n=4000))
    assert max(sizes) < 4000 / 2


def test_wrongly_assigned_sources_join_the_problem(monkeypatch):
    monkeypatch.setattr(transport, "SAMPLED", 80)  # prices of so small a sample mislead
    sizes, given = [], problem("around")
    monkeypatch.setattr(transport, "_solve", counting(sizes))
    k = flow_from_many(*given)
    assert sizes[1] < sizes[2]
    assert k == pytest.approx(solve(*given)[0], abs=1e-12)


def test_prices_prove_the_optimum_on_every_arc(monkeypatch):
    """The slow twin: every source sends only where the distance less the price is least."""
    given, prices = problem("around", n=150, m=8), []

    def solved(a, b, distance):
        k, v = solve(a, b, distance)
        prices.append(v)
        return k, v

    monkeypatch.setattr(transport, "_solve", solved)
    k = flow_from_many(*given)
    for i, row in enumerate(given[2]):
        least = min(row[j] - prices[-1][j] for j in range(8))
        for j in range(8):
            assert k[i, j] == 0 or row[j] - prices[-1][j] < least + 1e-9


def test_flow_uses_flow_from_many_for_many_sources(monkeypatch):
    a, b, distance = problem("blobs")
    expected, sizes = flow(distance, a, b), []
    monkeypatch.setattr(transport, "MANY_SOURCES", 100)
    monkeypatch.setattr(transport, "_solve", counting(sizes))
    assert flow(distance, a, b) == pytest.approx(expected, abs=1e-12)
    assert sizes[0] == 100
    assert max(sizes) < 800
