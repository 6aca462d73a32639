from __future__ import annotations

import numpy as np

from justright.selection import harden


def test_only_weights_above_the_threshold_become_one():
    assert harden(np.array([0.0, 0.5, 0.50001, 3.0]), 0.5).tolist() == [0.0, 0.0, 1.0, 1.0]
