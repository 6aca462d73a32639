"""Selections do not depend on the order of images, class numbers, copies of the target, or rotation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group

from justright.selection import BetaSelector, BinsSelector, CuiSelector

SELECTORS = [
    BetaSelector(domain="affine"),
    BetaSelector(domain="affine", reduction="median"),
    BetaSelector(domain="affine", reduction=0.05),
    BetaSelector(domain="rank"),
    BinsSelector(),
    BinsSelector(metric="cosine"),
    BinsSelector(metric="l2", combine="majority", n_splits=11),
    CuiSelector(),
]
each = pytest.mark.parametrize("selector", SELECTORS, ids=repr)


def weights(selector, pool, labels, target, clusters):
    if isinstance(selector, BetaSelector):
        return selector.fit(pool, labels, target).class_weight_
    return selector.fit(pool, labels, target, clusters).class_weight_


@each
def test_weights_do_not_depend_on_image_order(cloud, selector):
    expected = weights(selector, cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    a, b = np.random.default_rng(5).permutation(60), np.random.default_rng(6).permutation(60)
    shuffled = weights(selector, cloud.pool[a], cloud.labels[a], cloud.target[b], cloud.clusters[b])
    assert shuffled == pytest.approx(expected, abs=1e-9)


@each
def test_weights_do_not_depend_on_class_order(cloud, selector):
    expected = weights(selector, cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    new_name = np.random.default_rng(5).permutation(10)
    renamed = weights(selector, cloud.pool, new_name[cloud.labels], cloud.target, cloud.clusters)
    assert renamed[new_name] == pytest.approx(expected, abs=1e-9)


@each
def test_weights_do_not_depend_on_copies_of_the_target(cloud, selector):
    expected = weights(selector, cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    thrice = (np.concatenate([cloud.target] * 3), np.concatenate([cloud.clusters] * 3))
    if isinstance(selector, BinsSelector) and selector.mass == "images":
        # Pool and half of the target share one mass: the pool must grow with the target.
        pool, labels = np.concatenate([cloud.pool] * 3), np.concatenate([cloud.labels] * 3)
    else:
        pool, labels = cloud.pool, cloud.labels
    assert weights(selector, pool, labels, *thrice) == pytest.approx(expected, abs=1e-9)


def test_uniform_mass_ignores_copies_of_the_target(cloud):
    selector = BinsSelector(mass="uniform")
    expected = weights(selector, cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    thrice = (np.concatenate([cloud.target] * 3), np.concatenate([cloud.clusters] * 3))
    assert weights(selector, cloud.pool, cloud.labels, *thrice) == pytest.approx(expected, abs=1e-9)


@each
def test_weights_do_not_depend_on_rotation(cloud, selector):
    expected = weights(selector, cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    turn = ortho_group.rvs(8, random_state=0)
    turned = weights(selector, cloud.pool @ turn, cloud.labels, cloud.target @ turn, cloud.clusters)
    assert turned == pytest.approx(expected, abs=1e-6)
