from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import draw_batch, gradient, softmax

from justright.losses import DebiasedLoss, DebiasedSettings, WeightedCrossEntropy


def as_loops(second, logits, certainty, labels, weight, share, threshold, temperature):
    sums, counts = {True: 0.0, False: 0.0}, {True: 0, False: 0}
    for view in range(2):
        for i, label in enumerate(labels.tolist()):
            h, p = softmax(second[view, i].tolist(), temperature), softmax(logits[view, i].tolist(), 0.1)
            counts[label >= 0] += 1
            if label >= 0:
                sums[True] -= weight[i].item() * math.log(h[label])
            elif max(p) >= threshold:
                sums[False] -= certainty[view, i].item() * math.log(h[p.index(max(p))])
    return (1 - share) * sums[True] / counts[True] + share * sums[False] / counts[False]


def drawn(seed=0, labels=(0, -1, 1, 0, -1, 1, -1)):
    batch = draw_batch(labels=labels, seed=seed)
    generator = torch.Generator().manual_seed(seed + 50)
    second = 2 * torch.rand(batch.logits.shape, generator=generator, dtype=torch.float64) - 1
    return second, batch.logits, torch.rand(2, len(labels), generator=generator), batch.labels, batch.weight


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("share", "threshold", "temperature"), [(0.5, 0.6, 0.1), (0.2, 0.0, 0.7)])
def test_agrees_with_the_loss_written_as_loops(seed, share, threshold, temperature):
    given = drawn(seed)
    settings = DebiasedSettings(debiased_share=share, debiased_threshold=threshold, debiased_temperature=temperature)
    expected = as_loops(*given, share, threshold, temperature)
    assert DebiasedLoss(settings)(*given).item() == pytest.approx(expected, rel=1e-6)


def test_without_a_share_of_unlabeled_images_it_is_the_cross_entropy_of_labels():
    second, logits, certainty, labels, weight = drawn()
    found = DebiasedLoss(DebiasedSettings(debiased_share=0.0))(second, logits, certainty, labels, weight)
    assert found == WeightedCrossEntropy(0.1)(second, labels, weight)


def test_the_first_classifier_gets_no_gradient():
    second, *more = drawn()
    more[0].requires_grad_()
    DebiasedLoss(DebiasedSettings(debiased_threshold=0.0))(second.requires_grad_(), *more).backward()
    assert more[0].grad is None
    assert second.grad.abs().max() > 0


@pytest.mark.parametrize("label", [0, -1])
def test_a_batch_of_one_kind_gives_finite_gradients(label):
    second, *more = drawn(labels=(label,) * 3)
    assert gradient(DebiasedLoss(), second, *more).isfinite().all()
