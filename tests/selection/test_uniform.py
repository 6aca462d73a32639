from __future__ import annotations

import numpy as np

from justright.selection import OwnSelector, UniformSelector


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
