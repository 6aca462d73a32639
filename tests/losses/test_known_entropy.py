from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import draw_batch, softmax

from justright.losses import KnownEntropyLoss, KnownEntropySettings

USUAL = torch.tensor([0.4, 0.1, 0.2, 0.2, 0.1], dtype=torch.float64)


def as_loops(logits, labels, usual, n_known, threshold, temperature, margin):
    total, n_rows = 0.0, 0
    for view in logits.tolist():
        for row, label in zip(view, labels.tolist(), strict=True):
            n_rows += 1
            p = softmax(row, 0.1)
            if label != -1 or max(p) < threshold or p.index(max(p)) >= n_known:
                continue
            moved = [x / temperature + margin * math.log(q) for x, q in zip(row, usual.tolist(), strict=True)]
            total -= sum(a * math.log(b) for a, b in zip(softmax(row, temperature), softmax(moved, 1.0), strict=True))
    return total / n_rows


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_known", "threshold", "temperature", "margin"), [(3, 0.5, 0.05, 0.4), (5, 0.0, 0.3, 2.0)])
def test_agrees_with_the_loss_written_as_loops(seed, n_known, threshold, temperature, margin):
    batch = draw_batch(labels=(-1, -1, 1, 0, -1, -1, -1), seed=seed)
    settings = KnownEntropySettings(known_threshold=threshold, known_temperature=temperature, known_margin=margin)
    expected = as_loops(batch.logits, batch.labels, USUAL, n_known, threshold, temperature, margin)
    found = KnownEntropyLoss(n_known, settings)(batch.logits, batch.labels, USUAL)
    assert expected > 0
    assert found.item() == pytest.approx(expected, rel=1e-9)


def test_only_sure_unlabeled_images_of_known_classes_get_a_gradient():
    sure_known, sure_new, unsure = [0.9, -0.9, -0.9], [-0.9, -0.9, 0.9], [0.1, 0.0, 0.0]
    logits = torch.tensor([[sure_known, sure_known, sure_new, unsure]] * 2, requires_grad=True)
    labels = torch.tensor([-1, 0, -1, -1])
    KnownEntropyLoss(2)(logits, labels, torch.full((3,), 1 / 3)).backward()
    is_moved = logits.grad.abs().sum(dim=(0, 2)) > 0
    assert is_moved.tolist() == [True, False, False, False]


def test_the_usual_prediction_is_a_moving_average_of_mean_probabilities():
    logits = draw_batch().logits
    rows = [softmax(row, 1.0) for view in logits.tolist() for row in view]
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    found = KnownEntropyLoss(3, KnownEntropySettings(known_momentum=0.9)).moved(USUAL, logits)
    expected = [0.9 * before + 0.1 * now for before, now in zip(USUAL.tolist(), mean, strict=True)]
    assert found.tolist() == pytest.approx(expected)


def test_half_precision_is_raised():
    batch = draw_batch(labels=(-1,) * 5)
    loss, usual = KnownEntropyLoss(5, KnownEntropySettings(known_threshold=0.0)), USUAL.float()
    half = batch.logits.bfloat16()
    assert torch.equal(loss(half, batch.labels, usual), loss(half.float(), batch.labels, usual))
