from __future__ import annotations

import numpy as np
import pytest

from justright.geometry import class_centroids, cluster_centroids


def mean_as_loops(features, labels):
    """Eq. 7 and 10, image by image and number by number."""
    means = {}
    for c in sorted(set(labels.tolist())):
        total, count = [0.0] * features.shape[1], 0
        for row, label in zip(features.tolist(), labels.tolist(), strict=True):
            if label == c:
                total, count = [t + x for t, x in zip(total, row, strict=True)], count + 1
        means[c] = [t / count for t in total]
    return means


@pytest.mark.parametrize("mean_of", [class_centroids, cluster_centroids], ids=["eq_7", "eq_10"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_agrees_with_eq_7_and_10_written_as_loops(mean_of, dtype):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(40, 5)).astype(dtype), rng.choice([2, 3, 11], size=40)
    classes, centroids = mean_of(features, labels)
    expected = mean_as_loops(features.astype(np.float64), labels)
    assert classes.tolist() == list(expected)
    assert centroids == pytest.approx(np.array(list(expected.values())), abs=1e-12)
