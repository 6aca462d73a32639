from __future__ import annotations

import numpy as np
import pytest
import torch

from justright.selection import (
    BetaSelector,
    BinsSelector,
    CuiSelector,
    PoolFeatures,
    Selector,
    TargetFeatures,
    UniformSelector,
    stability,
)
from justright.utils.errors import DegenerateError, JustrightError


@pytest.mark.parametrize(
    "selector",
    [
        UniformSelector(),
        BetaSelector(domain="affine"),
        BetaSelector(domain="affine", reduction="max"),
        BetaSelector(domain="affine", reduction=0.2, threshold=1.0),
        BetaSelector(domain="affine", level="image"),
    ],
    ids=repr,
)
def test_what_is_reused_gives_what_fitting_anew_gives(cloud, selector):
    pool, target = PoolFeatures([(cloud.pool, cloud.labels)]), TargetFeatures([cloud.target])
    quick, slow = selector.resampler(pool, target), Selector.resampler(selector, pool, target)
    rows = np.random.default_rng(0).integers(60, size=60)
    assert quick(rows, 1) == pytest.approx(slow(rows, 1), abs=1e-9)


@pytest.mark.parametrize("selector", [BinsSelector(metric="l2"), CuiSelector()], ids=repr)
def test_with_clusters_kept_a_resample_is_a_fit_on_its_rows(cloud, selector):
    rows = np.random.default_rng(0).integers(60, size=60)
    target = TargetFeatures([cloud.target], clusters=cloud.clusters)
    quick = selector.resampler(PoolFeatures([(cloud.pool, cloud.labels)]), target)
    slow = selector.reseeded(7).fit(cloud.pool, cloud.labels, cloud.target[rows], cloud.clusters[rows])
    assert np.array_equal(quick(rows, 7), slow.class_weight_)


def test_clear_cases_are_kept_nearly_always_or_never(plane):
    selector = BinsSelector(n_clusters=12, n_splits=100)
    found = stability(selector, plane.pool, plane.labels, plane.target, n_resamples=5)
    assert found.kept_share[plane.near].mean() < 0.2
    assert found.kept_share[plane.middle].mean() > 0.8
    assert found.kept_share[plane.far].tolist() == [0.0] * 6
    assert np.array_equal(found.classes, np.arange(30))
    assert (found.n_resamples, found.n_failed) == (5, 0)


def test_without_chance_nothing_varies(cloud):
    over_splits = stability(BetaSelector(domain="affine"), cloud.pool, cloud.labels, cloud.target, over="splits")
    assert over_splits.weight_std == pytest.approx(np.zeros(10), abs=1e-12)
    over_target = stability(BetaSelector(domain="affine"), cloud.pool, cloud.labels, cloud.target, over="target")
    assert over_target.weight_std.max() > 0


def test_only_the_splits_vary_where_only_they_should(cloud):
    given = (cloud.pool, cloud.labels, cloud.target)
    selector = BinsSelector(n_splits=1)
    moving = stability(selector, *given, target_clusters=cloud.clusters, over="splits")
    assert moving.weight_std.max() > 0
    assert moving.kept_share == pytest.approx(moving.weight_mean)  # weights are 0 and 1


def test_tensors_that_record_gradients_are_resampled_too(cloud):
    tensors = torch.tensor(cloud.pool, requires_grad=True), torch.tensor(cloud.labels)
    target = torch.tensor(cloud.target, requires_grad=True)
    for selector in (BetaSelector(domain="affine"), BetaSelector(domain="affine", level="image")):
        by_tensor = stability(selector, *tensors, target, n_resamples=2)
        by_array = stability(selector, cloud.pool, cloud.labels, cloud.target, n_resamples=2)
        assert np.array_equal(by_tensor.weight_mean, by_array.weight_mean)


def test_the_same_seed_gives_the_same(cloud):
    given = (BetaSelector(domain="affine"), cloud.pool, cloud.labels, cloud.target)
    assert np.array_equal(stability(*given, seed=4).weight_mean, stability(*given, seed=4).weight_mean)
    assert not np.array_equal(stability(*given, seed=4).weight_mean, stability(*given, seed=5).weight_mean)


class EverySecond(UniformSelector):
    """Has no answer to the first, third, ... resample."""

    def resampler(self, pool, target):
        calls = iter(range(100))

        def weigh(rows, seed):
            if next(calls) % 2 == 0:
                raise DegenerateError("not this one")
            return np.arange(10.0)

        return weigh


def test_resamples_without_an_answer_are_counted_and_left_out(cloud):
    found = stability(EverySecond(), cloud.pool, cloud.labels, cloud.target, n_resamples=5)
    assert (found.n_resamples, found.n_failed) == (2, 3)
    assert found.weight_mean.tolist() == list(range(10))


def test_a_selector_without_any_answer_is_an_error(cloud):
    with pytest.raises(DegenerateError, match="any of 3 resamples"):
        stability(BetaSelector(threshold=99.0), cloud.pool, cloud.labels, cloud.target, n_resamples=3)


def test_what_is_resampled_has_a_name(cloud):
    with pytest.raises(JustrightError, match="over='pool'"):
        stability(BetaSelector(), cloud.pool, cloud.labels, cloud.target, over="pool")
