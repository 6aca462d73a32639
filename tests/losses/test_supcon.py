from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import HALF, dot, draw_batch, gradient, small_batch, unit

from justright.losses import WeightedSupConLoss


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


def test_the_default_temperature_is_the_public_one():
    z, _, labels, weight = draw_batch()
    assert WeightedSupConLoss()(z, labels, weight).item() == pytest.approx(eq_2_as_loops(z, labels, weight, 0.07))


def test_gradient_agrees_with_finite_differences():
    z, _, labels, weight = small_batch()
    assert torch.autograd.gradcheck(WeightedSupConLoss(0.3), (z.requires_grad_(), labels, weight))


def test_weights_of_1_are_exactly_the_unweighted_loss():
    loss, (z, _, labels, _) = WeightedSupConLoss(), draw_batch()
    n_rows = 2 * int((labels != -1).sum())
    assert loss(z, labels, torch.ones_like(labels, dtype=z.dtype)) == loss.per_image(z, labels).sum() / n_rows


def test_weight_0_removes_an_anchor_that_stays_positive_and_negative_of_the_others():
    loss, (z, _, labels, weight) = WeightedSupConLoss(), draw_batch()
    weight[0] = 0
    values = loss.per_image(z, labels)
    n_rows = 2 * int((labels != -1).sum())
    others = [i for i in range(1, len(labels)) if labels[i] != -1]
    assert torch.allclose(loss(z, labels, weight), (weight * values)[:, others].sum() / n_rows)

    moved = z.clone()
    moved[:, 0] = -moved[:, 0]
    changed = loss.per_image(moved, labels) != values
    assert changed[:, 3].all(), "its class still sees it as a positive"
    assert changed[:, 2].all(), "another class still sees it as a negative"
    assert gradient(loss, z, labels, weight)[:, 0].abs().sum() > 0


def test_weight_0_everywhere_teaches_nothing():
    z, _, labels, weight = draw_batch()
    assert WeightedSupConLoss()(z, labels, 0 * weight) == 0
    assert torch.equal(gradient(WeightedSupConLoss(), z, labels, 0 * weight), torch.zeros_like(z))


def test_unlabeled_images_take_no_part():
    loss, (z, _, labels, weight) = WeightedSupConLoss(), draw_batch()
    is_labeled = labels != -1
    alone = loss(z[:, is_labeled], labels[is_labeled], weight[is_labeled])
    assert loss(z, labels, weight).item() == pytest.approx(alone.item(), rel=1e-14)
    assert torch.equal(gradient(loss, z, labels, weight)[:, ~is_labeled], torch.zeros_like(z[:, ~is_labeled]))


@pytest.mark.parametrize("labels", [(-1, -1, -1), (-1, 4, -1)], ids=["none", "one"])
def test_none_or_one_labeled_image_gives_0_with_a_gradient_of_0(labels):
    z, _, labels, weight = draw_batch(labels)
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        assert WeightedSupConLoss()(z, labels, weight) == 0
        assert torch.equal(gradient(WeightedSupConLoss(), z, labels, weight), torch.zeros_like(z))


def test_with_one_view_an_image_alone_in_its_class_counts_0():
    z, _, labels, _ = draw_batch((0, 0, 1))
    values = WeightedSupConLoss().per_image(z[:1], labels)
    assert values[0, 2] == 0
    assert (values[0, :2] > 0).all()
    assert gradient(lambda z: WeightedSupConLoss().per_image(z, labels[2:]).sum(), z[:1, 2:]).isfinite().all()


def test_the_order_of_images_and_of_views_does_not_matter():
    loss, (z, _, labels, weight) = WeightedSupConLoss(0.3), draw_batch()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    assert torch.allclose(loss.per_image(z[:, order], labels[order]), loss.per_image(z, labels)[:, order])
    assert torch.allclose(loss(z.flip(0), labels, weight), loss(z, labels, weight))


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_is_computed_in_single(dtype):
    z, _, labels, weight = draw_batch(dtype=torch.float32)
    half = WeightedSupConLoss()(z.to(dtype), labels, weight)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(WeightedSupConLoss()(z, labels, weight).item(), rel=2e-2)
