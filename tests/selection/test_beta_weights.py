from __future__ import annotations

import numpy as np
import pytest

from justright.selection.beta_weights import BetaCurve, harden, remarks_about, weight_reasons
from justright.utils.errors import DegenerateError


def test_what_exceeds_the_threshold_is_kept():
    assert harden(np.array([0.0, 0.5, 0.6]), 0.5).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("domain", ["clip", "affine", "target"])
def test_the_peak_is_where_the_density_is_highest(domain):
    curve = BetaCurve(3.0, 5.0, domain, reference=0.4)
    grid = np.linspace(-0.999, 0.999, 20001)
    assert curve.peak() == pytest.approx(grid[curve.density(grid).argmax()], abs=1e-3)
    assert BetaCurve(1.0, 5.0, domain).peak() is None
    assert BetaCurve(5.0, 5.0, "rank").peak() is None


def test_a_pole_is_refused_as_a_weight_and_may_be_drawn():
    curve, ends = BetaCurve(0.5, 0.5, "clip"), np.array([0.0, 0.5])
    assert curve.density(ends)[0] == np.inf
    with pytest.raises(DegenerateError, match="infinite weight at similarity 0"):
        curve.soft_weights(ends)


def test_reasons_name_similarity_weight_and_side():
    weight, similarity = np.array([0.5, 0.0, 0.0]), np.array([0.4, 0.1, 0.9])
    assert weight_reasons(weight, similarity, 0.5, is_hard=False) == [
        "similarity 0.40 weighs 0.50",
        "too far: similarity 0.10 weighs 0.00",
        "too near: similarity 0.90 weighs 0.00",
    ]
    assert weight_reasons(weight, similarity, None, is_hard=True)[:2] == [
        "kept: similarity 0.40",
        "left out: similarity 0.10 weighs 0.00",
    ]


def test_only_weights_that_nearly_all_vanish_are_remarked_upon():
    assert remarks_about(np.array([1e-4] * 9 + [1.0])) == ()
    (remark,) = remarks_about(np.array([1e-4] * 19 + [1.0]))
    assert remark.said == "95% of the weights are below 0.001: labels will hardly count"
