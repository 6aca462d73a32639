"""Drawn features that tests of clustering share."""

from __future__ import annotations

import numpy as np


def blobs(n_images=240, n_classes=8, dim=6, noise=0.4, seed=0):
    """Features, classes, and labels that know half of the images of half of the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_images)
    x = rng.normal(size=(n_classes, dim))[y] + noise * rng.normal(size=(n_images, dim))
    return x, y, np.where((y < n_classes // 2) & (rng.random(n_images) < 0.5), y, -1)
