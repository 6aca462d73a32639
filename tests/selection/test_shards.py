from __future__ import annotations

import numpy as np
import pytest

from justright.selection import BetaSelector, BinsSelector, CuiSelector, UniformSelector
from justright.utils.errors import DataError, DegenerateError

SELECTORS = [BetaSelector(domain="affine"), BinsSelector(n_clusters=5), CuiSelector(n_clusters=5)]
each = pytest.mark.parametrize("selector", SELECTORS, ids=repr)


@each
def test_empty_target_raises(cloud, selector):
    with pytest.raises(DegenerateError, match="target is empty"):
        selector.fit(cloud.pool, cloud.labels, cloud.target[:0])


@each
def test_pool_of_one_class_raises(cloud, selector):
    with pytest.raises(DegenerateError, match="one class only, 0"):
        selector.fit(cloud.pool, np.zeros(60, dtype=int), cloud.target)


@each
def test_empty_pool_raises(cloud, selector):
    with pytest.raises(DegenerateError, match="pool is empty"):
        selector.fit(cloud.pool[:0], cloud.labels[:0], cloud.target)


@each
@pytest.mark.parametrize(("value", "message"), [(np.nan, "NaN"), (0.0, "zeros")])
@pytest.mark.parametrize("side", ["pool", "target"])
def test_error_names_rows_of_zero_features(cloud, selector, value, message, side):
    getattr(cloud, side)[17] = value
    with pytest.raises(DegenerateError, match=message) as error:
        selector.fit(cloud.pool, cloud.labels, cloud.target)
    assert f"{side} shard 0" in str(error.value)
    assert "row 17" in str(error.value)


@each
def test_pool_and_target_of_different_dimensions_are_rejected(cloud, selector):
    with pytest.raises(DataError, match="7 dimensions, while the pool has 8"):
        selector.fit(cloud.pool, cloud.labels, cloud.target[:, :7])


@each
def test_shards_of_different_dimensions_are_rejected(cloud, selector):
    shards = [(cloud.pool, cloud.labels), (cloud.pool[:, :7], cloud.labels)]
    with pytest.raises(DataError, match="7 dimensions after features of 8"):
        selector.fit_stream(shards, [cloud.target])


def test_baselines_accept_a_single_class(cloud):
    assert UniformSelector().fit(cloud.pool, np.zeros(60, dtype=int), cloud.target).class_weight_.tolist() == [1.0]
    with pytest.raises(DegenerateError, match="pool is empty"):
        UniformSelector().fit(cloud.pool[:0], cloud.labels[:0], cloud.target)


def test_labels_must_be_whole_nonnegative_and_as_many_as_images(cloud):
    with pytest.raises(DataError, match=r"labels of shape \(59,\) for 60 images"):
        BetaSelector().fit(cloud.pool, cloud.labels[:-1], cloud.target)
    with pytest.raises(DataError, match="float64"):
        BetaSelector().fit(cloud.pool, cloud.labels.astype(float), cloud.target)
    with pytest.raises(DataError, match="6 of 60 images have a label below 0"):
        BetaSelector().fit(cloud.pool, cloud.labels - 1, cloud.target)


def test_features_must_be_a_table(cloud):
    with pytest.raises(DataError, match=r"shape \(60, 2, 4\)"):
        BetaSelector().fit(cloud.pool.reshape(60, 2, 4), cloud.labels, cloud.target)


def test_generators_are_rejected_if_shards_are_read_twice(cloud):
    for selector in (BinsSelector(n_clusters=5), BetaSelector(level="image")):
        with pytest.raises(DataError, match="only once"):
            selector.fit_stream([(cloud.pool, cloud.labels)], iter([cloud.target]))
    for reduction in ("min", "median"):
        selector = BetaSelector(domain="affine", reduction=reduction)
        selector.fit_stream(iter([(cloud.pool, cloud.labels)]), iter([cloud.target]))
        assert len(selector.class_weight_) == 10


def test_pool_without_shards_raises():
    for selector in (BetaSelector(), UniformSelector()):
        with pytest.raises(DegenerateError, match="the pool is empty"):
            selector.fit_stream([], [np.ones((2, 3))])
