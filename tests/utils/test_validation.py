from __future__ import annotations

import numpy as np
import pytest
import torch

from justright.utils.errors import DataError, DegenerateError, JustrightError
from justright.utils.validation import check_directions, check_features, check_labels, check_level, to_numpy


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_valid_features_are_not_copied(make, dtype):
    features = np.ones((3, 2), dtype=dtype)
    assert np.shares_memory(check_features(make(features)), features)


def test_integers_become_floats():
    assert check_features(np.ones((2, 2), dtype=int)).dtype == np.float64


@pytest.mark.parametrize(
    "features",
    [np.ones(3), np.ones((2, 2, 2)), np.ones((0, 4)), np.ones((4, 0)), np.full((2, 2), "a"), torch.ones(3)],
    ids=str,
)
def test_other_shapes_and_types_are_rejected(features):
    with pytest.raises(DataError, match="target"):
        check_features(features, "target")


def test_an_empty_table_may_be_allowed():
    assert len(check_features(np.ones((0, 4)), min_images=0)) == 0


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_with_nan_or_infinity_are_named(make, value):
    features = np.ones((4, 3))
    features[2, 1] = value
    with pytest.raises(DegenerateError, match=r"pool: NaN or infinite values in 1 of 4 rows \(row 2\)"):
        check_features(make(features), "pool")


def test_numbers_whose_sum_overflows_are_rejected():
    with pytest.raises(DegenerateError, match="overflows"):
        check_features(np.full((2, 2), 1e308))


def test_rows_of_zeros_are_named():
    features = np.ones((9, 3))
    features[1:8] = 0
    with pytest.raises(DegenerateError, match=r"only zeros in 7 of 9 rows \(rows 1, 2, 3, 4, 5, \.\.\.\)"):
        check_directions(features)


def test_labels_become_int64():
    labels = check_labels(torch.tensor([2, 0], dtype=torch.int16), 2)
    assert labels.dtype == np.int64
    assert labels.tolist() == [2, 0]


@pytest.mark.parametrize(
    "labels",
    [
        np.zeros((2, 1), dtype=int),
        np.zeros(3, dtype=int),
        np.zeros(2),
        np.array([0, -1]),
        np.array([0, 2**64 - 1], dtype=np.uint64),
    ],
    ids=str,
)
def test_invalid_labels_are_rejected(labels):
    with pytest.raises(DataError):
        check_labels(labels, 2)


def test_unlabeled_images_may_be_allowed():
    assert check_labels([-1, 3], allow_unlabeled=True).tolist() == [-1, 3]
    with pytest.raises(DataError, match="1 of 2 images have a label below -1"):
        check_labels([-2, 3], allow_unlabeled=True)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, np.nan])
def test_levels_outside_0_and_1_are_rejected(level):
    with pytest.raises(JustrightError, match="level"):
        check_level(level)


def test_tensors_that_numpy_cannot_read_are_converted():
    tensor = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    assert to_numpy(tensor).dtype == np.float32
