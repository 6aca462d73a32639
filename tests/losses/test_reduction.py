from __future__ import annotations

import pytest
import torch

from justright.losses import labeled_mean
from justright.losses.reduction import at_least_float32

VALUES = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
LABELS = torch.tensor([0, -1, 7])


def test_divides_by_row_count_not_by_weight_sum():
    mean = labeled_mean(VALUES, LABELS, torch.tensor([0.5, 9.0, 2.0]))
    assert mean.item() == pytest.approx((0.5 * 1 + 2 * 3 + 0.5 * 4 + 2 * 6) / 4)


def test_values_of_unlabeled_images_are_ignored():
    values = VALUES.clone()
    values[:, 1] = torch.inf
    values.requires_grad_()
    mean = labeled_mean(values, LABELS, torch.tensor([1.0, torch.nan, 1.0]))
    mean.backward()
    assert mean.item() == pytest.approx((1 + 3 + 4 + 6) / 4)
    assert values.grad.tolist() == [[0.25, 0.0, 0.25]] * 2


def test_a_single_labeled_image_is_its_own_mean():
    mean = labeled_mean(VALUES, torch.tensor([-1, 3, -1]), torch.ones(3))
    assert mean.item() == pytest.approx((2 + 5) / 2)


def test_double_precision_weights_keep_the_precision_of_the_values():
    assert labeled_mean(VALUES, LABELS, torch.ones(3, dtype=torch.float64)).dtype == torch.float32


@pytest.mark.parametrize(("given", "found"), [("float16", "float32"), ("bfloat16", "float32"), ("float64", "float64")])
def test_only_half_precision_is_converted(given, found):
    wide = at_least_float32(VALUES.to(getattr(torch, given)))
    assert wide.dtype == getattr(torch, found)
    assert wide.tolist() == VALUES.tolist()
