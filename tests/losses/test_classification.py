from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import HALF, draw_batch, gradient, small_batch, softmax
from torch.nn.functional import cross_entropy

from justright.losses import WeightedCrossEntropy


def eq_4_as_loops(logits, labels, weight, temperature):
    terms = []
    for view in logits.tolist():
        for row, label, w in zip(view, labels.tolist(), weight.tolist(), strict=True):
            if label != -1:
                terms.append(-w * math.log(softmax(row, temperature)[label]))
    return sum(terms) / len(terms)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_agrees_with_eq_4_written_as_loops(seed, temperature):
    _, logits, labels, weight = draw_batch(seed=seed)
    loss = WeightedCrossEntropy(temperature)(logits, labels, weight)
    assert loss.item() == pytest.approx(eq_4_as_loops(logits, labels, weight, temperature), rel=1e-12)


def test_the_default_temperature_is_the_public_one():
    _, logits, labels, weight = draw_batch()
    assert WeightedCrossEntropy()(logits, labels, weight).item() == pytest.approx(
        eq_4_as_loops(logits, labels, weight, 0.1)
    )


def test_gradient_agrees_with_finite_differences():
    _, logits, labels, weight = small_batch()
    assert torch.autograd.gradcheck(WeightedCrossEntropy(), (logits.requires_grad_(), labels, weight))


def test_weights_of_1_are_exactly_the_unweighted_loss():
    loss, (_, logits, labels, weight) = WeightedCrossEntropy(), draw_batch()
    weighted = loss(logits, labels, torch.ones_like(weight))
    assert weighted == loss.per_image(logits, labels).sum() / (2 * (labels != -1).sum())
    plain = cross_entropy(logits.flatten(0, 1) / 0.1, labels.repeat(2), ignore_index=-1)
    assert weighted.item() == pytest.approx(plain.item(), rel=1e-14)


def test_weight_0_removes_an_image():
    loss, (_, logits, labels, weight) = WeightedCrossEntropy(), draw_batch()
    weight[0] = 0
    grad = gradient(loss, logits, labels, weight)
    assert torch.equal(grad[:, 0], torch.zeros_like(grad[:, 0]))
    changed = logits.clone()
    changed[:, 0] = 0.5
    assert loss(changed, labels, weight) == loss(logits, labels, weight)


def test_weight_0_without_a_prototype_counts_among_the_labeled_and_adds_nothing():
    loss, (_, logits, labels, weight) = WeightedCrossEntropy(), draw_batch()
    weight[0] = 0
    foreign = labels.clone()
    foreign[0] = logits.shape[-1] + 3  # a class for which the classifier has no place
    assert loss(logits, foreign, weight) == loss(logits, labels, weight)
    is_labeled = labels != -1
    is_labeled[0] = False
    n_labeled = int(is_labeled.sum())
    without = loss(logits[:, is_labeled], labels[is_labeled], weight[is_labeled])
    assert loss(logits, foreign, weight).item() == pytest.approx(without.item() * n_labeled / (n_labeled + 1))
    assert not gradient(loss, logits, foreign, weight)[:, 0].any()


def test_unlabeled_images_take_no_part():
    loss, (_, logits, labels, weight) = WeightedCrossEntropy(), draw_batch()
    is_labeled = labels != -1
    alone = loss(logits[:, is_labeled], labels[is_labeled], weight[is_labeled])
    assert loss(logits, labels, weight).item() == pytest.approx(alone.item(), rel=1e-14)
    assert not gradient(loss, logits, labels, weight)[:, ~is_labeled].any()


def test_no_labeled_image_gives_0_with_a_gradient_of_0():
    _, logits, labels, weight = draw_batch((-1, -1))
    assert WeightedCrossEntropy()(logits, labels, weight) == 0
    assert torch.equal(gradient(WeightedCrossEntropy(), logits, labels, weight), torch.zeros_like(logits))


def test_one_labeled_image_counts_as_its_mean_over_both_views():
    _, logits, labels, weight = draw_batch((-1, 3, -1))
    values = WeightedCrossEntropy().per_image(logits, labels)
    assert torch.allclose(WeightedCrossEntropy()(logits, labels, weight), weight[1] * values[:, 1].mean())


def test_the_order_of_images_does_not_matter():
    loss, (_, logits, labels, _) = WeightedCrossEntropy(), draw_batch()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    assert torch.allclose(loss.per_image(logits[:, order], labels[order]), loss.per_image(logits, labels)[:, order])


def test_labels_may_be_short_integers():
    _, logits, labels, weight = draw_batch()
    assert WeightedCrossEntropy()(logits, labels.int(), weight) == WeightedCrossEntropy()(logits, labels, weight)


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_is_computed_in_single(dtype):
    _, logits, labels, weight = draw_batch(dtype=torch.float32)
    half = WeightedCrossEntropy()(logits.to(dtype), labels, weight)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(WeightedCrossEntropy()(logits, labels, weight).item(), rel=1e-2)
