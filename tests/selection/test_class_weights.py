from __future__ import annotations

import numpy as np
import pytest

from justright.selection import BetaSelector, BinsSelector, ClassWeights, CuiSelector, UniformSelector
from justright.selection.class_weights import SelectionPlot, closest_first


@pytest.mark.parametrize("measure", ["similarity", "distance", ""])
def test_measure_is_similarity_or_distance(measure):
    columns = {"rank": np.arange(2)} | ({measure: np.ones(2)} if measure else {})
    assert ClassWeights(np.arange(2), np.ones(2), ["a", "b"], columns).measure == measure


def test_closest_first_is_a_stable_order():
    values = np.array([0.2, 0.1, 0.2, 0.3])
    assert closest_first("distance", values).tolist() == [1, 0, 2, 3]
    assert closest_first("similarity", values).tolist() == [3, 0, 2, 1]


def test_selector_describes_its_figure(plane):
    given = (plane.pool, plane.labels, plane.target, plane.clusters)
    bins = BinsSelector(n_splits=100).fit(*given)
    plot = bins.plot(bins.weights_)
    assert plot.parts == ((12, "bin 1", False), (12, "bin 2, kept", True), (6, "discarded", False))
    assert plot.level == (bins.threshold_, f"threshold {bins.threshold_:.3g}")
    cui = CuiSelector(n_classes=4).fit(*given)
    assert cui.plot(cui.weights_) == SelectionPlot("similarity", cut=(4, "4 kept"))
    none = UniformSelector().fit(*given)
    assert none.plot(none.weights_) is None


@pytest.mark.parametrize("domain", ["clip", "affine", "minmax", "rank", "target"])
def test_beta_curve_passes_through_the_classes(cloud, domain):
    selector = BetaSelector(domain=domain, n_clusters=5, reduction="median", normalize="max")
    selector.fit(cloud.pool, cloud.labels, cloud.target)
    plot = selector.plot(selector.weights_)
    ((x, y),) = plot.curves
    assert np.interp(selector.class_similarity_, x, y) == pytest.approx(selector.class_weight_, abs=2e-3)
    assert (plot.kind, plot.title) == ("weights", "Beta(5, 5)")


def test_threshold_adds_a_level_and_a_step_curve(cloud):
    selector = BetaSelector(domain="affine", threshold=1.0).fit(cloud.pool, cloud.labels, cloud.target)
    plot = selector.plot(selector.weights_)
    soft, hard = (y for _, y in plot.curves)
    assert np.array_equal(hard, (soft > 1).astype(float))
    assert plot.level == (1.0, "threshold 1")


def test_figure_needs_only_parameters_and_weights(cloud):
    fitted = BinsSelector(select=False, discard=False).fit(cloud.pool, cloud.labels, cloud.target, cloud.clusters)
    assert BinsSelector(select=False, discard=False).plot(fitted.weights_) == fitted.plot(fitted.weights_)
