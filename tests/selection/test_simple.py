from __future__ import annotations

import numpy as np

from justright.selection import OwnSelector, RandomSelector, UniformSelector


def test_every_class_weighs_one(cloud):
    selector = UniformSelector().fit(cloud.pool, cloud.labels, cloud.target)
    assert selector.class_weight_.tolist() == [1.0] * 10
    assert np.array_equal(selector.selected_classes_, np.arange(10))
    assert selector.reason_[0] == "kept: every class weighs 1"


def test_own_labels_alone_leave_every_class_out(cloud):
    selector = OwnSelector().fit(cloud.pool, cloud.labels, cloud.target)
    assert selector.class_weight_.tolist() == [0.0] * 10
    assert len(selector.selected_classes_) == 0
    assert selector.reason_[0] == "left out: own labels only"


POOL, LABELS, TARGET = np.eye(40, 5) + 0.1, np.repeat(np.arange(10), 4), np.ones((3, 5))


def test_a_share_of_the_classes_is_kept_and_another_seed_keeps_others():
    kept = [set(RandomSelector(0.3, seed).fit(POOL, LABELS, TARGET).selected_classes_.tolist()) for seed in range(6)]
    assert {len(each) for each in kept} == {3}
    assert len(set(map(frozenset, kept))) > 1
    again = RandomSelector(0.3, seed=2).fit(POOL, LABELS, TARGET)
    assert set(again.selected_classes_.tolist()) == kept[2]


def test_at_least_one_class_is_kept():
    assert len(RandomSelector(0.0).fit(POOL, LABELS, TARGET).selected_classes_) == 1
