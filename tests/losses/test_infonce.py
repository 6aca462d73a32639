from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import HALF, dot, draw_batch, gradient, small_batch, unit

from justright.losses import SelfContrastiveLoss


def eq_1_as_loops(projections, temperature):
    rows = [unit(row) for view in projections.tolist() for row in view]
    n_images = len(rows) // 2
    total = 0.0
    for i in range(len(rows)):
        other_view = i + n_images if i < n_images else i - n_images
        norm = sum(math.exp(dot(rows[i], rows[n]) / temperature) for n in range(len(rows)) if n != i)
        total -= math.log(math.exp(dot(rows[i], rows[other_view]) / temperature) / norm)
    return total / len(rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_agrees_with_eq_1_written_as_loops(seed, temperature):
    z = draw_batch(seed=seed).projections
    assert SelfContrastiveLoss(temperature)(z).item() == pytest.approx(eq_1_as_loops(z, temperature), rel=1e-12)


def test_the_default_temperature_is_1():
    z = draw_batch().projections
    assert SelfContrastiveLoss()(z).item() == pytest.approx(eq_1_as_loops(z, 1.0))


def test_gradient_agrees_with_finite_differences():
    assert torch.autograd.gradcheck(SelfContrastiveLoss(0.3), small_batch().projections.requires_grad_())


def test_is_the_mean_of_one_value_for_each_view_of_each_image():
    loss, z = SelfContrastiveLoss(), draw_batch().projections
    values = loss.per_image(z)
    assert values.shape == z.shape[:2]
    assert loss(z) == values.mean()


def test_the_order_of_images_and_of_views_does_not_matter():
    loss, z = SelfContrastiveLoss(0.2), draw_batch().projections
    order = torch.randperm(z.shape[1], generator=torch.Generator().manual_seed(1))
    assert torch.allclose(loss.per_image(z[:, order]), loss.per_image(z)[:, order])
    assert torch.allclose(loss(z.flip(0)), loss(z))


def test_the_length_of_a_projection_does_not_matter():
    loss, z = SelfContrastiveLoss(), draw_batch().projections
    assert torch.allclose(loss(z * torch.linspace(0.5, 9, z.shape[1], dtype=z.dtype)[:, None]), loss(z))


def test_an_image_alone_has_nothing_to_learn():
    z = draw_batch(labels=(0,)).projections
    assert SelfContrastiveLoss()(z) == 0
    assert torch.equal(gradient(SelfContrastiveLoss(), z), torch.zeros_like(z))


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_is_computed_in_single(dtype):
    z = draw_batch(dtype=torch.float32).projections
    loss = SelfContrastiveLoss(0.2)(z.to(dtype))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(SelfContrastiveLoss(0.2)(z).item(), rel=1e-2)
