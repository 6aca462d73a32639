from __future__ import annotations

import math

import numpy as np
import pytest

from justright.geometry import cosine_similarity, farthest_similarity, nearest_similarity, row_quantiles
from justright.geometry.rows import CHUNK_ROWS


def cosines_as_loops(centroids, target):
    def norm(v):
        return math.sqrt(sum(x * x for x in v))

    return [
        [sum(a * b for a, b in zip(h, x, strict=True)) / (norm(h) * norm(x)) for x in target.tolist()]
        for h in centroids.tolist()
    ]


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 6)), rng.normal(size=(25, 6))


def test_cosines_agree_with_loops(points):
    assert cosine_similarity(*points) == pytest.approx(np.array(cosines_as_loops(*points)), abs=1e-12)


def quantile_similarity(centroids, target, quantile=0.5):
    return row_quantiles(cosine_similarity(centroids, target), quantile)


def test_agrees_with_eq_12_written_as_loops(points):
    expected = [min(row) for row in cosines_as_loops(*points)]
    assert farthest_similarity(*points) == pytest.approx(expected, abs=1e-12)


def test_nearest_and_median_agree_with_loops(points):
    cosines = cosines_as_loops(*points)
    assert nearest_similarity(*points) == pytest.approx([max(row) for row in cosines], abs=1e-12)
    assert quantile_similarity(*points) == pytest.approx([sorted(row)[12] for row in cosines], abs=1e-12)


def test_median_of_an_even_number_is_the_mean_of_the_middle_two(points):
    centroids, target = points
    middle = [(sorted(row)[11] + sorted(row)[12]) / 2 for row in cosines_as_loops(centroids, target[:24])]
    assert quantile_similarity(centroids, target[:24]) == pytest.approx(middle, abs=1e-12)


@pytest.mark.parametrize("quantile", [0.0, 0.05, 0.3, 0.5, 0.77, 1.0])
def test_repeating_the_target_changes_no_quantile(points, quantile):
    centroids, target = points
    once, thrice = target, np.concatenate([target] * 3)
    assert quantile_similarity(centroids, thrice, quantile) == pytest.approx(
        quantile_similarity(centroids, once, quantile), abs=1e-12
    )


def test_images_of_all_chunks_count():
    target = np.tile(np.array([[1.0, 0.1]], dtype=np.float32), (CHUNK_ROWS + 5, 1))
    target[-1] = [-1.0, 0.0]
    assert farthest_similarity(np.array([[1.0, 0.0]]), target) == pytest.approx([-1.0])


def test_similarities_stay_in_the_range_of_a_cosine():
    features = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    assert nearest_similarity(features, features).max() <= 1.0
    assert farthest_similarity(features, -features).min() >= -1.0


def quantile_of_all(centroids, target, quantile):
    return np.quantile(cosine_similarity(centroids, target), quantile, axis=1, method="averaged_inverted_cdf")


@pytest.mark.parametrize("n_images", [1, 2, 7, 10])
@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.25, 0.5, 0.51, 0.9, 1.0])
def test_quantiles_agree_with_numpy(points, n_images, quantile):
    centroids, target = points
    expected = quantile_of_all(centroids, target[:n_images], quantile)
    assert quantile_similarity(centroids, target[:n_images], quantile) == pytest.approx(expected)
