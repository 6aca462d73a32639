from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import draw_batch, gradient, softmax

from justright.losses import DebGCDSettings, DebiasedLoss, DetectorLoss, WeightedCrossEntropy


def debiased_as_loops(second, logits, certainty, labels, weight, share, threshold, temperature):
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
def test_the_second_classifier_agrees_with_its_loss_written_as_loops(seed, share, threshold, temperature):
    given = drawn(seed)
    settings = DebGCDSettings(debiased_share=share, debiased_threshold=threshold, debiased_temperature=temperature)
    expected = debiased_as_loops(*given, share, threshold, temperature)
    assert DebiasedLoss(settings)(*given).item() == pytest.approx(expected, rel=1e-6)


def test_without_a_share_of_unlabeled_images_it_is_the_cross_entropy_of_labels():
    second, logits, certainty, labels, weight = drawn()
    found = DebiasedLoss(DebGCDSettings(debiased_share=0.0))(second, logits, certainty, labels, weight)
    assert found == WeightedCrossEntropy(0.1)(second, labels, weight)


def test_the_first_classifier_gets_no_gradient():
    second, *more = drawn()
    more[0].requires_grad_()
    DebiasedLoss(DebGCDSettings(debiased_threshold=0.0))(second.requires_grad_(), *more).backward()
    assert more[0].grad is None
    assert second.grad.abs().max() > 0


@pytest.mark.parametrize("label", [0, -1])
def test_a_batch_of_one_kind_gives_the_second_classifier_finite_gradients(label):
    second, *more = drawn(labels=(label,) * 3)
    assert gradient(DebiasedLoss(), second, *more).isfinite().all()


def detector_as_loops(margins, labels, weight, temperature, entropy, agreement):
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
def test_the_detector_agrees_with_its_loss_written_as_loops(seed, n_known, temperature, entropy, agreement):
    batch = draw_batch(n_categories=n_known, seed=seed)
    settings = DebGCDSettings(detector_temperature=temperature, detector_entropy=entropy, detector_agreement=agreement)
    expected = detector_as_loops(batch.logits, batch.labels, batch.weight, temperature, entropy, agreement)
    found = DetectorLoss(settings)(batch.logits, batch.labels, batch.weight)
    assert found.item() == pytest.approx(expected, rel=1e-9)


def test_one_known_class_has_no_other_to_be_told_from():
    margins, labels, weight = torch.full((2, 1, 1), 0.1), torch.tensor([0]), torch.ones(1)
    found = DetectorLoss()(margins, labels, weight)
    assert found.item() == pytest.approx(-math.log(1 / (1 + math.exp(-1.0))))


@pytest.mark.parametrize("label", [0, -1])
def test_a_batch_of_one_kind_gives_the_detector_finite_numbers_and_gradients(label):
    batch = draw_batch(labels=(label, label))
    of = gradient(lambda rows: DetectorLoss()(100 * rows, batch.labels, batch.weight), batch.logits)
    assert of.isfinite().all()


def test_weights_act_in_the_detector_on_labeled_images_alone():
    batch = draw_batch()
    doubled = torch.where(batch.labels < 0, 7.0, 2 * batch.weight)
    no_labels = torch.full_like(batch.labels, -1)
    loss = DetectorLoss(DebGCDSettings(detector_entropy=0.0, detector_agreement=0.0))
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
