from __future__ import annotations

import numpy as np
import pytest

from justright.selection import (
    BetaSelector,
    BinsSelector,
    CuiSelector,
    RandomMatchedSelector,
    UniformMatchedSelector,
)


@pytest.mark.parametrize("like", ["bins", "cui"])
def test_random_matched_keeps_as_many_classes_as_a_hard_selector(plane, like):
    data = plane.pool, plane.labels, plane.target
    matched = {"bins": BinsSelector, "cui": CuiSelector}[like](n_clusters=12).fit(*data)
    control = RandomMatchedSelector(like=like, n_clusters=12).fit(*data)
    assert len(control.selected_classes_) == len(matched.selected_classes_)
    assert set(control.class_weight_.tolist()) <= {0.0, 1.0}


def test_random_matched_keeps_as_much_total_weight_as_a_soft_selector(plane):
    data = plane.pool, plane.labels, plane.target
    total = BetaSelector(n_clusters=12).fit(*data).class_weight_.sum()
    control = RandomMatchedSelector(like="beta", n_clusters=12).fit(*data)
    assert control.class_weight_.sum() == max(1, round(min(total, len(control.classes_))))


def test_random_matched_draws_other_classes_with_another_seed(plane):
    data = plane.pool, plane.labels, plane.target
    draws = [RandomMatchedSelector(n_clusters=12, seed=seed).fit(*data).selected_classes_ for seed in range(4)]
    assert len({tuple(drawn) for drawn in draws}) > 1


def test_uniform_matched_gives_all_classes_the_mean_weight_of_an_image(plane):
    rows = np.concatenate([np.arange(len(plane.labels)), np.flatnonzero(plane.labels == plane.labels[0])])
    pool, labels = plane.pool[rows], plane.labels[rows]  # one class has twice as many images
    beta = BetaSelector().fit(pool, labels, plane.target)
    control = UniformMatchedSelector().fit(pool, labels, plane.target)
    assert np.ptp(control.class_weight_) == 0
    assert control.sample_weight(labels).sum() == pytest.approx(beta.sample_weight(labels).sum())
