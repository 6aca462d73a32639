from __future__ import annotations

import numpy as np

from justright.utils.types import UNLABELED, Features, Labels, Mask


def test_unlabeled_is_no_class_label():
    assert UNLABELED < 0
    assert isinstance(np.full(3, UNLABELED), Labels)


def test_array_types_differ():
    features, labels, mask = np.zeros((2, 3), np.float32), np.zeros(2, np.int64), np.zeros(2, bool)
    assert isinstance(features, Features)
    assert not isinstance(labels, Features)
    assert isinstance(mask, Mask)
    assert not isinstance(features, Mask)
    assert not isinstance(mask, Labels)
