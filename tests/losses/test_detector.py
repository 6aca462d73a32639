from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import draw_batch, gradient

from justright.losses import DetectorLoss, DetectorSettings


def as_loops(margins, labels, weight, temperature, entropy, agreement):
    views = [[[1 / (1 + math.exp(-x / temperature)) for x in row] for row in view] for view in margins.tolist()]
    labeled, of_entropy, apart, n_labeled, n_unlabeled = 0.0, 0.0, 0.0, 0, 0
    for i, label in enumerate(labels.tolist()):
        for s in (views[0][i], views[1][i]):
            if label >= 0:
                others = [-math.log(1 - s[k]) for k in range(len(s)) if k != label]
                labeled += weight[i].item() * (-math.log(s[label]) + max(others, default=0.0))
                n_labeled += 1
            else:
                of_entropy -= sum(p * math.log(p) + (1 - p) * math.log(1 - p) for p in s) / len(s)
                n_unlabeled += 1
        if label < 0:
            for a, b in zip(views[0][i], views[1][i], strict=True):
                apart += (a - b) ** 2 + ((1 - a) - (1 - b)) ** 2
    return labeled / n_labeled + entropy * of_entropy / n_unlabeled + agreement * apart / (n_unlabeled / 2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_known", "temperature", "entropy", "agreement"), [(5, 0.1, 0.1, 1.0), (3, 1.0, 2.0, 0.3)])
def test_agrees_with_the_loss_written_as_loops(seed, n_known, temperature, entropy, agreement):
    batch = draw_batch(n_categories=n_known, seed=seed)
    settings = DetectorSettings(
        detector_temperature=temperature, detector_entropy=entropy, detector_agreement=agreement
    )
    expected = as_loops(batch.logits, batch.labels, batch.weight, temperature, entropy, agreement)
    found = DetectorLoss(settings)(batch.logits, batch.labels, batch.weight)
    assert found.item() == pytest.approx(expected, rel=1e-9)


def test_one_known_class_has_no_other_to_be_told_from():
    margins, labels, weight = torch.full((2, 1, 1), 0.1), torch.tensor([0]), torch.ones(1)
    found = DetectorLoss()(margins, labels, weight)
    assert found.item() == pytest.approx(-math.log(1 / (1 + math.exp(-1.0))))


@pytest.mark.parametrize("label", [0, -1])
def test_a_batch_of_one_kind_gives_finite_numbers_and_gradients(label):
    batch = draw_batch(labels=(label, label))
    of = gradient(lambda rows: DetectorLoss()(100 * rows, batch.labels, batch.weight), batch.logits)
    assert of.isfinite().all()


def test_weights_act_on_labeled_images_alone():
    batch = draw_batch()
    doubled = torch.where(batch.labels < 0, 7.0, 2 * batch.weight)
    no_labels = torch.full_like(batch.labels, -1)
    loss = DetectorLoss(DetectorSettings(detector_entropy=0.0, detector_agreement=0.0))
    assert loss(batch.logits, batch.labels, doubled).item() == pytest.approx(
        2 * loss(batch.logits, batch.labels, batch.weight).item()
    )
    unlabeled = DetectorLoss()
    assert unlabeled(batch.logits, no_labels, doubled) == unlabeled(batch.logits, no_labels, batch.weight)


def test_certainty_is_1_where_one_known_class_or_none_is_sure_and_0_where_nothing_is():
    margins = torch.tensor([[[9.0, -9.0], [-9.0, -9.0], [0.0, -9.0]]] * 2, requires_grad=True)
    found = DetectorLoss().certainty(margins)
    assert found[0].tolist() == [pytest.approx(1), pytest.approx(1), pytest.approx(0)]
    assert not found.requires_grad
