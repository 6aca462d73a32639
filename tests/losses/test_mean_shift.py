from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import dot, draw_batch, gradient, small_batch, unit

from justright.losses import CMSObjective, CMSSettings, MeanShiftLoss, WeightedSupConLoss


def memory_of(dim, n_rows=12, seed=5):
    drawn = torch.randn(n_rows, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn, dim=1)


def as_loops(projections, memory, temperature, n_neighbors, shift):
    rows, remembered = [unit(row) for view in projections.tolist() for row in view], memory.tolist()
    shifted = []
    for row in rows:
        nearest = sorted(remembered, key=lambda other: -dot(row, other))[1 : n_neighbors + 1]
        mean = [sum(column) / len(nearest) for column in zip(*nearest, strict=True)]
        shifted.append(unit([(1 - shift) * own + shift * other for own, other in zip(row, mean, strict=True)]))
    n_images, total = len(rows) // 2, 0.0
    for i in range(len(rows)):
        other_view = (i + n_images) % len(rows)
        others = [n for n in range(len(rows)) if n not in (i, other_view)]
        total += math.log(sum(math.exp(dot(shifted[i], shifted[n]) / temperature) for n in others))
        total -= dot(shifted[i], shifted[other_view]) / temperature
    return total / len(rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("temperature", "n_neighbors", "shift"), [(0.25, 8, 0.5), (1.0, 1, 0.2), (0.3, 99, 1.0)])
def test_agrees_with_the_loss_written_as_loops(seed, temperature, n_neighbors, shift):
    z = draw_batch(seed=seed).projections
    memory = memory_of(z.shape[-1])
    loss = MeanShiftLoss(CMSSettings(temperature_unsup=temperature, n_neighbors=n_neighbors, shift=shift))
    assert loss(z, memory).item() == pytest.approx(as_loops(z, memory, temperature, n_neighbors, shift), rel=1e-9)


def test_without_a_shift_the_memory_is_not_read():
    z = draw_batch().projections
    loss = MeanShiftLoss(CMSSettings(shift=0.0))
    assert loss(z, memory_of(z.shape[-1])) == loss(z, memory_of(z.shape[-1], seed=6))


def test_gradient_is_0_at_shift_1():
    z = draw_batch().projections.requires_grad_()
    MeanShiftLoss(CMSSettings(shift=1.0))(z, memory_of(z.shape[-1])).backward()
    assert z.grad.abs().max() == 0


def test_gradient_ignores_the_neighbors():
    """The length |u| is a constant: the gradient of the input is (1 - shift) / |u| times that of the output."""
    v = unit_rows(small_batch().projections.flatten(0, 1)).requires_grad_()
    loss, memory = MeanShiftLoss(CMSSettings(shift=0.3, n_neighbors=2)), memory_of(v.shape[-1])
    loss.shifted(v, memory).sum().backward()
    found = loss.shifted(v.detach(), memory)
    nearest = (v.detach() @ memory.T).argsort(dim=1, descending=True)[:, 1:3]
    length = (0.7 * v.detach() + 0.3 * memory[nearest].mean(dim=1)).norm(dim=1, keepdim=True)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(len(v), dtype=v.dtype))
    ones = torch.ones_like(v)
    expected = 0.7 / length * (ones - (ones * v.detach()).sum(dim=1, keepdim=True) * v.detach())  # v has length 1
    torch.testing.assert_close(v.grad, expected)


def unit_rows(rows):
    return torch.nn.functional.normalize(rows.detach(), dim=-1)


def test_loss_of_a_single_image_is_finite():
    z = draw_batch(labels=(0,)).projections
    assert math.isfinite(MeanShiftLoss()(z, memory_of(z.shape[-1])).item())


def test_loss_is_finite_if_neighbors_cancel_out():
    z = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], requires_grad=True)
    memory = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    loss = MeanShiftLoss(CMSSettings(n_neighbors=1))(z, memory)  # the second nearest of (1, 0) is its opposite
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()


def test_autocast_does_not_lower_the_precision():
    z = draw_batch().projections.float()
    memory = memory_of(z.shape[-1]).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = MeanShiftLoss()(z, memory)
    assert torch.equal(under_autocast, MeanShiftLoss()(z, memory))


def test_objective_is_weighted_sum_and_weights_act_on_labels_only():
    batch = draw_batch()
    memory, settings = memory_of(batch.projections.shape[-1]), CMSSettings(supervised_share=0.3)
    total, terms = CMSObjective(settings)(batch.projections, memory, batch.labels, batch.weight)
    unsup = MeanShiftLoss(settings)(batch.projections, memory)
    sup = WeightedSupConLoss()(batch.projections, batch.labels, batch.weight)
    assert terms == {"mean_shift": unsup, "sup_contrastive": sup}
    torch.testing.assert_close(total, 0.7 * unsup + 0.3 * sup)


def test_without_labels_the_gradient_is_that_of_the_shifted_views():
    z = draw_batch().projections
    memory, labels = memory_of(z.shape[-1]), torch.full((z.shape[1],), -1)
    weight = torch.ones(z.shape[1], dtype=z.dtype)
    of_both = gradient(lambda rows: CMSObjective()(rows, memory, labels, weight).total, z)
    of_one = gradient(lambda rows: 0.65 * MeanShiftLoss()(rows, memory), z)
    torch.testing.assert_close(of_both, of_one)
