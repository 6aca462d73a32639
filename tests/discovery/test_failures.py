from __future__ import annotations

import pytest
import torch

from justright.discovery.loop import MAX_IDS_SHOWN, DivergedError, divergence, stop_if_gradient_not_finite
from justright.losses import LossParts

FINITE = torch.tensor(1.0)


def test_terms_and_images_are_named():
    rows = torch.zeros(2, 3, 4)
    rows[1, 2, 0] = torch.inf
    other = torch.zeros(1, 2, 7)
    other[0, 0, 6] = torch.nan
    loss = LossParts(torch.tensor(torch.nan), {"good": FINITE, "bad": torch.tensor(torch.nan)})
    ids = [["a", "b", "c"], ["d", "e"]]
    message = str(divergence(loss, [{"x": rows}, {"y": other}], ids, "epoch 2"))
    assert message.startswith("bad is not finite in epoch 2; nor are the outputs of 2 images: c, d.")


def test_long_list_of_images_is_truncated():
    rows = torch.full((2, 20, 1), torch.nan)
    loss = LossParts(torch.tensor(torch.inf), {"a": FINITE})
    ids = [[f"image{number:02}" for number in range(20)]]
    message = str(divergence(loss, [{"x": rows}], ids, "epoch 1"))
    assert message.startswith("loss is not finite in epoch 1; nor are the outputs of 20 images: image00, ")
    assert f"image{MAX_IDS_SHOWN - 1:02}, ..." in message


def test_error_says_so_if_all_outputs_are_finite():
    loss = LossParts(torch.tensor(torch.nan), {"a": torch.tensor(torch.nan)})
    message = str(divergence(loss, [{"x": torch.zeros(2, 2, 3)}], [["a", "b"]], "epoch 1"))
    assert "all outputs of the network are finite" in message


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_infinite_gradient_raises(bad):
    fine, without, wrong = (torch.nn.Parameter(torch.zeros(3)) for _ in range(3))
    fine.grad, wrong.grad = torch.ones(3), torch.tensor([0.0, bad, 0.0])
    stop_if_gradient_not_finite([fine, without], "epoch 1")
    with pytest.raises(DivergedError, match="gradient is not finite in epoch 1"):
        stop_if_gradient_not_finite([fine, without, wrong], "epoch 1")


def test_overflowing_sum_of_finite_gradients_passes():
    large = torch.nn.Parameter(torch.zeros(3))
    large.grad = torch.full((3,), 3e38)
    stop_if_gradient_not_finite([large], "epoch 1")
