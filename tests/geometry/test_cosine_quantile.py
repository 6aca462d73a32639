from __future__ import annotations

import numpy as np
import pytest

from justright.geometry import CosineQuantile, cosine_similarity, row_quantile


def quantile_of_all(centroids, target, quantile):
    return row_quantile(cosine_similarity(centroids, target), quantile)


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 4)), rng.normal(size=(200, 4)).astype(np.float32)


@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.5, 0.905, 1.0])
def test_a_quantile_that_fits_is_exact(points, quantile):
    centroids, target = points
    first = CosineQuantile(centroids, quantile).update(target[:50])
    merged = first.merge(CosineQuantile(centroids, quantile).update(target[50:]))
    assert merged.similarity() == pytest.approx(quantile_of_all(centroids, target, quantile), abs=1e-7)


@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.5, 0.905, 1.0])
@pytest.mark.parametrize("n_bins", [64, 8192])
def test_a_quantile_that_does_not_fit_keeps_its_error_bound(points, quantile, n_bins):
    centroids, target = points
    few = CosineQuantile(centroids, quantile, n_bins=n_bins, max_exact=100)
    for start in range(0, len(target), 30):
        few.update(target[start : start + 30])
    error = np.abs(few.similarity() - quantile_of_all(centroids, target, quantile))
    assert error.max() <= 1 / n_bins + 1e-6


def test_histograms_merge_with_each_other_and_with_what_is_still_exact(points):
    centroids, target = points

    def part(rows, max_exact):
        return CosineQuantile(centroids, 0.3, max_exact=max_exact).update(target[rows])

    whole = part(slice(None), 0).similarity()
    one, two = slice(0, 80), slice(80, 200)
    for first, second in [(0, 0), (0, 10**6), (10**6, 0)]:
        merged = part(one, first).merge(part(two, second))
        assert merged.n_images == 200
        assert np.array_equal(merged.similarity(), whole)
