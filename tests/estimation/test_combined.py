import math
from functools import partial

import numpy as np
import pytest
from tests.estimation import test_spread

from justright.estimation.combined import (
    COEFFICIENTS,
    DISAGREEMENT,
    ERROR,
    FEW_CLASSES,
    FEW_IMAGES,
    CombinedCounter,
    correction_terms,
)
from justright.estimation.spread import SpreadCounter
from justright.utils.errors import DataError

blobs = partial(test_spread.blobs, n_classes=16, per_class=24, n_labeled=8, noise=0.5)


@pytest.mark.parametrize("seed", range(3))
def test_estimate_and_interval_match_the_true_k(seed):
    x, _, labels = blobs(seed=seed)
    counter = CombinedCounter().fit(x, labels)
    assert abs(counter.n_categories_ - 16) <= 1
    low, high = counter.interval()
    assert low <= 16 <= high


def test_is_the_weighted_geometric_mean_of_its_parts_with_a_correction():
    x, _, labels = blobs(noise=1.0)
    counter = CombinedCounter(spread_share=0.6).fit(x, labels)
    spread, mixture = counter.estimates_["spread"], counter.estimates_["mixture"]
    correction = np.dot(COEFFICIENTS, counter.correction_terms_)
    assert counter.n_categories_ == round(spread**0.6 * mixture**0.4 * math.exp(correction))


@pytest.mark.parametrize(("n_known", "fade"), [(4, 1.0), (12, 0.5), (15, 0.0)])
def test_correction_agrees_with_its_formula_written_as_loops(n_known, fade):
    x, y, _ = blobs(per_class=20)
    labels = np.where((y < n_known) & (np.arange(len(y)) % 4 == 0), y, -1)
    unlabeled = [i for i in range(len(y)) if labels[i] == -1]
    known_share = sum(1 for i in unlabeled if y[i] < n_known) / len(unlabeled)  # clusters of these blobs are classes
    expected = fade * (0.0187 * math.log(5) + 0.0496 * known_share - 0.0508)
    for slope, divisor in [(0.5, 0.5), (0.0, 0.08)]:
        terms = correction_terms(x, labels, 16, slope)
        assert np.dot(COEFFICIENTS, terms) == pytest.approx(expected / divisor)


def test_interval_grows_with_the_level():
    x, _, labels = blobs(noise=1.0)
    counter = CombinedCounter().fit(x, labels)
    low, high = sorted(counter.estimates_.values())
    few = FEW_CLASSES / 8 + FEW_IMAGES * counter.n_categories_ / len(x)
    factor = math.exp(ERROR * (1 + few + DISAGREEMENT * math.log(high / low)))
    assert counter.interval()[1] == math.ceil(counter.n_categories_ * factor)
    assert counter.interval(0.5)[1] < counter.interval(0.9)[1] < counter.interval(0.99)[1]
    with pytest.raises(DataError, match="level 1"):
        counter.interval(1.0)


def test_never_below_the_labeled_classes():
    x, y, _ = blobs(noise=3.0)
    counter = CombinedCounter().fit(x, np.where(np.arange(len(y)) % 2 == 0, y, -1))
    assert counter.n_categories_ >= 16
    assert counter.interval()[0] == 16


def test_one_labeled_class_or_a_pool_alone_is_counted_by_the_spread():
    x, y, _ = blobs(n_classes=30)
    one = CombinedCounter().fit(x, np.where((y == 0) & (np.arange(len(y)) % 2 == 0), y, -1))
    assert list(one.estimates_) == ["spread"]
    is_target = y < 12
    alone = CombinedCounter().fit(x[is_target], None, pool=(x[~is_target], y[~is_target]))
    assert list(alone.estimates_) == ["spread"]
    low, high = alone.interval()
    assert low <= 12 <= high <= is_target.sum()
    none = CombinedCounter().fit(x, None)
    assert list(none.estimates_) == ["spread"]
    assert none.interval() == SpreadCounter().fit(x, None).interval(), "of classes nothing is known"
