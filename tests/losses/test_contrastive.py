from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import HALF, dot, draw_batch, gradient, small_batch, unit

from justright.losses import SelfContrastiveLoss, WeightedSupConLoss
from justright.losses.contrastive import pair_logits


def test_pair_logits_are_scaled_cosines_with_masked_diagonal():
    logits = pair_logits(torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]]), 0.5)
    assert logits.tolist() == [[-torch.inf, 0, -2], [0, -torch.inf, 0], [-2, 0, -torch.inf]]


def test_autocast_does_not_lower_the_precision():
    rows = torch.randn(8, 32, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (rows @ rows.T).dtype == torch.bfloat16
        under_autocast = pair_logits(rows, 0.07)
    assert torch.equal(under_autocast, pair_logits(rows, 0.07))


def test_half_precision_is_raised_before_norms():
    for dtype in HALF:
        logits = pair_logits(torch.full((2, 64), 60_000.0, dtype=dtype), 1.0)  # squared, far beyond float16
        assert torch.allclose(logits[0, 1], torch.tensor(1.0))


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


def test_gradient_agrees_with_finite_differences():
    assert torch.autograd.gradcheck(SelfContrastiveLoss(0.3), small_batch().projections.requires_grad_())


def test_loss_ignores_order_of_images_and_views():
    loss, z = SelfContrastiveLoss(0.2), draw_batch().projections
    order = torch.randperm(z.shape[1], generator=torch.Generator().manual_seed(1))
    assert torch.allclose(loss(z[:, order]), loss(z))
    assert torch.allclose(gradient(loss, z[:, order]), gradient(loss, z)[:, order])
    assert torch.allclose(loss(z.flip(0)), loss(z))


def test_loss_ignores_length_of_projections():
    loss, z = SelfContrastiveLoss(), draw_batch().projections
    assert torch.allclose(loss(z * torch.linspace(0.5, 9, z.shape[1], dtype=z.dtype)[:, None]), loss(z))


def test_loss_of_a_single_image_is_0():
    z = draw_batch(labels=(0,)).projections
    assert SelfContrastiveLoss()(z) == 0
    assert torch.equal(gradient(SelfContrastiveLoss(), z), torch.zeros_like(z))


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_is_computed_in_single(dtype):
    z = draw_batch(dtype=torch.float32).projections
    loss = SelfContrastiveLoss(0.2)(z.to(dtype))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(SelfContrastiveLoss(0.2)(z).item(), rel=1e-2)


def eq_2_as_loops(projections, labels, weight, temperature):
    rows = []
    for view in projections.tolist():
        for row, label, w in zip(view, labels.tolist(), weight.tolist(), strict=True):
            if label != -1:
                rows.append((unit(row), label, w))
    total = 0.0
    for i, (z_i, label_i, w_i) in enumerate(rows):
        others = [(z, label) for n, (z, label, _) in enumerate(rows) if n != i]
        log_norm = math.log(sum(math.exp(dot(z_i, z) / temperature) for z, _ in others))
        terms = [log_norm - dot(z_i, z) / temperature for z, label in others if label == label_i]
        total += w_i * sum(terms) / len(terms)
    return total / len(rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_agrees_with_eq_2_written_as_loops(seed, temperature):
    z, _, labels, weight = draw_batch(seed=seed)
    loss = WeightedSupConLoss(temperature)(z, labels, weight)
    assert loss.item() == pytest.approx(eq_2_as_loops(z, labels, weight, temperature), rel=1e-12)


def test_gradient_of_the_supervised_loss_agrees_with_finite_differences():
    z, _, labels, weight = small_batch()
    assert torch.autograd.gradcheck(WeightedSupConLoss(0.3), (z.requires_grad_(), labels, weight))


def test_weights_of_1_are_exactly_the_unweighted_loss():
    loss, (z, _, labels, _) = WeightedSupConLoss(), draw_batch()
    n_rows = 2 * int((labels != -1).sum())
    assert loss(z, labels, torch.ones_like(labels, dtype=z.dtype)) == loss.per_image(z, labels).sum() / n_rows


def test_weight_0_removes_the_anchor_but_not_its_pairs():
    loss, (z, _, labels, weight) = WeightedSupConLoss(), draw_batch()
    weight[0] = 0
    values = loss.per_image(z, labels)
    n_rows = 2 * int((labels != -1).sum())
    others = [i for i in range(1, len(labels)) if labels[i] != -1]
    assert torch.allclose(loss(z, labels, weight), (weight * values)[:, others].sum() / n_rows)

    moved = z.clone()
    moved[:, 0] = -moved[:, 0]
    changed = loss.per_image(moved, labels) != values
    assert changed[:, 3].all(), "still a positive of its class"
    assert changed[:, 2].all(), "still a negative of another class"
    assert gradient(loss, z, labels, weight)[:, 0].abs().sum() > 0


def test_loss_is_0_if_all_weights_are_0():
    z, _, labels, weight = draw_batch()
    assert WeightedSupConLoss()(z, labels, 0 * weight) == 0
    assert torch.equal(gradient(WeightedSupConLoss(), z, labels, 0 * weight), torch.zeros_like(z))


def test_unlabeled_images_are_ignored():
    loss, (z, _, labels, weight) = WeightedSupConLoss(), draw_batch()
    is_labeled = labels != -1
    alone = loss(z[:, is_labeled], labels[is_labeled], weight[is_labeled])
    assert loss(z, labels, weight).item() == pytest.approx(alone.item(), rel=1e-14)
    assert torch.equal(gradient(loss, z, labels, weight)[:, ~is_labeled], torch.zeros_like(z[:, ~is_labeled]))


@pytest.mark.parametrize("labels", [(-1, -1, -1), (-1, 4, -1)], ids=["none", "one"])
def test_loss_and_gradient_are_0_with_at_most_one_labeled_image(labels):
    z, _, labels, weight = draw_batch(labels)
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        assert WeightedSupConLoss()(z, labels, weight) == 0
        assert torch.equal(gradient(WeightedSupConLoss(), z, labels, weight), torch.zeros_like(z))


def test_loss_of_an_image_without_positives_is_0():
    z, _, labels, _ = draw_batch((0, 0, 1))
    values = WeightedSupConLoss().per_image(z[:1], labels)
    assert values[0, 2] == 0
    assert (values[0, :2] > 0).all()
    assert gradient(lambda z: WeightedSupConLoss().per_image(z, labels[2:]).sum(), z[:1, 2:]).isfinite().all()


def test_supervised_loss_ignores_order_of_images_and_views():
    loss, (z, _, labels, weight) = WeightedSupConLoss(0.3), draw_batch()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    assert torch.allclose(loss.per_image(z[:, order], labels[order]), loss.per_image(z, labels)[:, order])
    assert torch.allclose(loss(z.flip(0), labels, weight), loss(z, labels, weight))


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_of_the_supervised_loss_is_computed_in_single(dtype):
    z, _, labels, weight = draw_batch(dtype=torch.float32)
    half = WeightedSupConLoss()(z.to(dtype), labels, weight)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(WeightedSupConLoss()(z, labels, weight).item(), rel=2e-2)
