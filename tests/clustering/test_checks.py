import numpy as np
import pytest
import torch

from justright.clustering.checks import check_features, check_labels, check_n_clusters, prepared
from justright.utils.errors import DegenerateError


def test_numbers_whose_sum_overflows_are_refused_though_each_is_finite():
    with pytest.raises(DegenerateError, match="Numbers of the features are not finite"):
        check_features(torch.full((4, 2), 1e308, dtype=torch.float64))
    check_features(np.ones((4, 2)))


def test_no_labels_are_all_unlabeled_and_others_become_integers():
    x = np.ones((3, 2))
    assert check_labels(x, None).tolist() == [-1, -1, -1]
    assert check_labels(x, np.array([2, -1, 0], dtype=np.int8)).dtype == np.int64


def test_clusters_are_at_least_the_classes_and_none_stays_empty():
    check_n_clusters(3, 2, 1)
    for n_clusters, n_classes, n_unlabeled in ((1, 2, 5), (0, 0, 5), (4, 2, 1)):
        with pytest.raises(DegenerateError, match=f"{n_clusters} clusters"):
            check_n_clusters(n_clusters, n_classes, n_unlabeled)


def test_features_get_length_1_but_for_a_row_of_zeros():
    x = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float16)
    found = prepared(x, normalize=True)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0]])
    assert prepared(x, normalize=False).tolist() == x.tolist()
