from __future__ import annotations

import numpy as np
import pytest
import torch

from justright.selection import (
    BetaSelector,
    BinsSelector,
    ClassWeights,
    RandomSelector,
    Selector,
    UniformSelector,
    stability,
)
from justright.utils.errors import DegenerateError


def test_clear_classes_are_kept_always_or_never(plane):
    selector = BinsSelector(n_clusters=12, n_splits=100)
    result = stability(selector, plane.pool, plane.labels, plane.target, n_resamples=5)
    assert result.kept_share[plane.near].mean() < 0.2
    assert result.kept_share[plane.middle].mean() > 0.8
    assert result.kept_share[plane.far].tolist() == [0.0] * 6
    assert np.array_equal(result.classes, np.arange(30))
    assert (result.n_resamples, result.n_failed) == (5, 0)


def test_given_clusters_replace_k_means(cloud):
    selector = BinsSelector(n_splits=1)  # without n_clusters
    result = stability(selector, cloud.pool, cloud.labels, cloud.target, target_clusters=cloud.clusters, n_resamples=5)
    assert result.weight_std.max() > 0
    assert result.kept_share == pytest.approx(result.weight_mean)  # weights are 0 and 1


def test_uniform_weights_do_not_vary_and_random_ones_do(cloud):
    result = stability(UniformSelector(), cloud.pool, cloud.labels, cloud.target, n_resamples=3)
    assert (result.weight_mean.tolist(), result.weight_std.max(), result.n_resamples) == ([1.0] * 10, 0.0, 3)
    drawn = stability(RandomSelector(), cloud.pool, cloud.labels, cloud.target, n_resamples=40)
    assert (drawn.kept_share > 0).all()
    assert (drawn.kept_share < 1).all()


def test_tensors_with_gradients_are_accepted(cloud):
    tensors = torch.tensor(cloud.pool, requires_grad=True), torch.tensor(cloud.labels)
    target = torch.tensor(cloud.target, requires_grad=True)
    for selector in (BetaSelector(domain="affine"), BetaSelector(domain="affine", level="image")):
        by_tensor = stability(selector, *tensors, target, n_resamples=2)
        by_array = stability(selector, cloud.pool, cloud.labels, cloud.target, n_resamples=2)
        assert np.array_equal(by_tensor.weight_mean, by_array.weight_mean)


def test_equal_seeds_give_equal_stability(cloud):
    given = (BetaSelector(domain="affine"), cloud.pool, cloud.labels, cloud.target)
    assert np.array_equal(stability(*given, seed=4).weight_mean, stability(*given, seed=4).weight_mean)
    assert not np.array_equal(stability(*given, seed=4).weight_mean, stability(*given, seed=5).weight_mean)


class EverySecond(Selector):
    """Selects nothing in the first, third, ... resample."""

    calls = 0

    def _weigh(self, pool, target):
        EverySecond.calls += 1
        if EverySecond.calls % 2:
            raise DegenerateError("not this one")
        return ClassWeights(pool.classes(), np.arange(10.0), [""] * 10)


def test_failed_resamples_are_counted_and_left_out(cloud):
    result = stability(EverySecond(), cloud.pool, cloud.labels, cloud.target, n_resamples=5)
    assert (result.n_resamples, result.n_failed) == (2, 3)
    assert result.weight_mean.tolist() == list(range(10))


def test_all_resamples_failing_raises(cloud):
    with pytest.raises(DegenerateError, match="any of 3 resamples"):
        stability(BetaSelector(threshold=99.0), cloud.pool, cloud.labels, cloud.target, n_resamples=3)
