from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from justright.evaluation import Counts
from justright.evaluation.agreement import adjusted_rand_index, normalized_mutual_information

RNG = np.random.default_rng(0)
PARTITIONS = {
    "unrelated": (RNG.integers(0, 5, 300), RNG.integers(0, 8, 300)),
    "equal": (np.repeat([0, 1, 2], 4), np.repeat([5, 3, 9], 4)),
    "one group each": (np.zeros(5, dtype=int), np.ones(5, dtype=int)),
    "one group and many": (np.zeros(5, dtype=int), np.arange(5)),
    "all alone": (np.arange(6), np.arange(6)[::-1].copy()),
    "one image": (np.array([3]), np.array([0])),
    "against chance": (np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_agrees_with_scikit_learn(name):
    y_true, y_pred = PARTITIONS[name]
    counts = Counts.of(y_true, y_pred)
    assert normalized_mutual_information(counts) == pytest.approx(
        normalized_mutual_info_score(y_true, y_pred), abs=1e-12
    )
    assert adjusted_rand_index(counts) == pytest.approx(adjusted_rand_score(y_true, y_pred), abs=1e-12)
