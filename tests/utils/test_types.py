from __future__ import annotations

import numpy as np

from justright.utils.types import UNLABELED, Features, Labels, Mask


def test_the_mark_of_an_unlabeled_image_can_be_no_class():
    assert UNLABELED < 0
    assert isinstance(np.full(3, UNLABELED), Labels)


def test_the_names_of_arrays_tell_them_apart():
    features, labels, mask = np.zeros((2, 3), np.float32), np.zeros(2, np.int64), np.zeros(2, bool)
    assert isinstance(features, Features)
    assert not isinstance(labels, Features)
    assert isinstance(mask, Mask)
    assert not isinstance(features, Mask)
    assert not isinstance(mask, Labels)
