from __future__ import annotations

import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from justright.clustering.principal import BLOCK_ROWS, in_directions, principal_directions


def drawn(n=60, dim=6, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, dim)) * np.arange(1, dim + 1) + 5).astype(np.float32)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_directions_agree_with_power_iterations_written_as_loops(power):
    features = drawn()
    rows = features.astype(np.float64).tolist()
    n, dim = len(rows), len(rows[0])
    mean = [sum(row[j] for row in rows) / n for j in range(dim)]
    covariance = [
        [sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in rows) / n for j in range(dim)] for i in range(dim)
    ]
    center, directions = principal_directions(features, 3, power)
    np.testing.assert_allclose(center, mean, rtol=1e-5)
    assert directions.shape == (dim, 3)
    for number in range(3):
        vector = [1.0] * dim
        for _ in range(2000):
            vector = [sum(c * v for c, v in zip(row, vector, strict=True)) for row in covariance]
            variance = math.sqrt(sum(v * v for v in vector))
            vector = [v / variance for v in vector]
        expected = [v / math.sqrt(variance) ** power for v in vector]
        sign = math.copysign(1.0, sum(a * b for a, b in zip(expected, directions[:, number].tolist(), strict=True)))
        np.testing.assert_allclose(sign * directions[:, number], expected, atol=1e-4)
        for i in range(dim):  # what was found is taken away, and the next one is the largest
            for j in range(dim):
                covariance[i][j] -= variance * vector[i] * vector[j]


def test_a_spread_of_4_becomes_one_of_2():
    rng = np.random.default_rng(0)
    features = (rng.choice([-1.0, 1.0], size=(1000, 2)) * [16.0, 4.0]).astype(np.float32)
    center, directions = principal_directions(features, 2)
    np.testing.assert_allclose(((features - center) @ directions).std(axis=0), [4.0, 2.0], rtol=0.02)


def test_blocks_of_images_add_up():
    features = drawn(BLOCK_ROWS + 7, 4)
    center, directions = principal_directions(features, 4)
    spread = np.linalg.svd(features - features.mean(axis=0), compute_uv=False) / np.sqrt(len(features))
    np.testing.assert_allclose(in_directions(features, center, directions).std(axis=0), np.sqrt(spread), rtol=1e-3)


def test_no_more_directions_are_kept_than_features_have():
    features = drawn(4, 6)
    assert principal_directions(features, 6)[1].shape == (6, 3)
    assert principal_directions(features, 2)[1].shape == (6, 2)
    assert principal_directions(np.ones((5, 6), np.float32), 3)[1].shape == (6, 0)


def test_the_bytes_do_not_depend_on_the_number_of_threads():
    features, found = drawn(BLOCK_ROWS + 100, 300), []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            parts = principal_directions(features, 40)
            found.append([part.tobytes() for part in (*parts, in_directions(features, *parts))])
    assert found[0] == found[1]
