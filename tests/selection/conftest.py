"""Drawn pools and targets whose correct selection is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def plane():
    """Twelve target clusters on a circle; classes on them (near), a little outside (middle) and far outside (far)."""
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.arange(12) / 12
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    places = np.concatenate([10 * circle, 13 * circle, 60 * circle[::2]])
    labels = np.repeat(np.arange(len(places)), 2)
    clusters = np.repeat(np.arange(12), 30)
    origin = np.array([30.0, 30.0])
    return SimpleNamespace(
        pool=places[labels] + origin + rng.normal(0, 0.05, (len(labels), 2)),
        labels=labels,
        target=10 * circle[clusters] + origin + rng.normal(0, 0.05, (len(clusters), 2)),
        clusters=clusters,
        near=np.arange(12),
        middle=np.arange(12, 24),
        far=np.arange(24, 30),
    )


@pytest.fixture
def cloud():
    """Ten classes and a target of five blobs in eight dimensions, all on one side of the origin."""
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat(np.arange(10), 6))
    clusters = rng.permutation(np.repeat(np.arange(5), 12))
    origin = rng.normal(size=8)
    return SimpleNamespace(
        pool=origin + 0.7 * rng.normal(size=(10, 8))[labels] + rng.normal(0, 0.1, (60, 8)),
        labels=labels,
        target=origin + rng.normal(size=(5, 8))[clusters] + rng.normal(0, 0.1, (60, 8)),
        clusters=clusters,
    )
