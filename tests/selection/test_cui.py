from __future__ import annotations

import math

import numpy as np
import pytest

from justright.selection import BinsSelector, CuiSelector
from justright.utils.errors import DegenerateError, JustrightError


def similarity_as_loops(data, gamma):
    """Eq. 7 to 9 for each class alone: with one source point, the flow is the target's mass."""

    def mean(rows):
        return [sum(column) / len(rows) for column in zip(*rows, strict=True)]

    def members(features, labels, c):
        return [row for row, label in zip(features.tolist(), labels.tolist(), strict=True) if label == c]

    clusters = [members(data.target, data.clusters, c) for c in sorted(set(data.clusters.tolist()))]
    similarity = []
    for c in sorted(set(data.labels.tolist())):
        centroid = mean(members(data.pool, data.labels, c))
        cost = sum(len(rows) * math.dist(centroid, mean(rows)) for rows in clusters) / len(data.target)
        similarity.append(math.exp(-gamma * cost))
    return similarity


def test_similarity_agrees_with_eq_9_as_loops(cloud):
    selector = CuiSelector(n_classes=3, gamma=0.5).fit(cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    expected = similarity_as_loops(cloud, 0.5)
    assert selector.class_similarity_ == pytest.approx(expected, abs=1e-9)
    assert sorted(selector.selected_classes_.tolist()) == sorted(np.argsort(expected)[-3:].tolist())


def test_the_nearest_classes_are_kept_and_ranked(plane):
    selector = CuiSelector(n_classes=12, n_clusters=12).fit(plane.pool, plane.labels, plane.target)
    assert selector.selected_classes_.tolist() == plane.near.tolist()
    assert sorted(selector.rank_.tolist()) == list(range(1, 31))
    assert selector.reason_[24].startswith("too far: rank ")


def test_half_of_the_classes_by_default(cloud):
    selector = CuiSelector().fit(cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    assert len(selector.selected_classes_) == 5


def test_ranks_do_not_depend_on_gamma_even_where_similarities_vanish(cloud):
    given = (cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    assert np.array_equal(CuiSelector(gamma=1e-6).fit(*given).rank_, CuiSelector(gamma=1e6).fit(*given).rank_)


def test_n_classes_above_the_pool_raises(cloud):
    with pytest.raises(DegenerateError, match="n_classes=11 of a pool with 10"):
        CuiSelector(n_classes=11).fit(cloud.pool, cloud.labels, cloud.target, cloud.clusters)


@pytest.mark.parametrize("wrong", [{"metric": "x"}, {"mass": "x"}], ids=str)
def test_invalid_options_are_rejected_by_name(cloud, wrong):
    with pytest.raises(JustrightError, match=next(iter(wrong))):
        CuiSelector(**wrong).fit(cloud.pool, cloud.labels, cloud.target, cloud.clusters)


def test_n_classes_can_follow_bins(plane):
    bins = BinsSelector(n_clusters=12).fit(plane.pool, plane.labels, plane.target)
    cui = CuiSelector(n_classes="bins", n_clusters=12).fit(plane.pool, plane.labels, plane.target)
    assert len(cui.selected_classes_) == len(bins.selected_classes_) > 0
    far = CuiSelector(n_classes="bins", n_clusters=12).fit(plane.pool + 1e4, plane.labels, plane.target)
    assert len(far.selected_classes_) == len(far.classes_) // 2, "Bins keeps none of them"
