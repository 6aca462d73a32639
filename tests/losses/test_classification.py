from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import HALF, draw_batch, gradient, small_batch, softmax
from torch.nn.functional import cross_entropy

from justright.losses import (
    ContrastiveSettings,
    DistillationLoss,
    SelfContrastiveLoss,
    SimGCDSettings,
    WeightedCrossEntropy,
    WeightedSupConLoss,
)
from justright.utils.errors import JustrightError


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


def test_weight_0_without_prototype_counts_as_labeled():
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


def test_unlabeled_images_are_ignored():
    loss, (_, logits, labels, weight) = WeightedCrossEntropy(), draw_batch()
    is_labeled = labels != -1
    alone = loss(logits[:, is_labeled], labels[is_labeled], weight[is_labeled])
    assert loss(logits, labels, weight).item() == pytest.approx(alone.item(), rel=1e-14)
    assert not gradient(loss, logits, labels, weight)[:, ~is_labeled].any()


def test_loss_and_gradient_are_0_without_labeled_images():
    _, logits, labels, weight = draw_batch((-1, -1))
    assert WeightedCrossEntropy()(logits, labels, weight) == 0
    assert torch.equal(gradient(WeightedCrossEntropy(), logits, labels, weight), torch.zeros_like(logits))


def test_one_labeled_image_counts_as_its_mean_over_both_views():
    _, logits, labels, weight = draw_batch((-1, 3, -1))
    values = WeightedCrossEntropy().per_image(logits, labels)
    assert torch.allclose(WeightedCrossEntropy()(logits, labels, weight), weight[1] * values[:, 1].mean())


def test_loss_ignores_order_of_images():
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


def eq_5_as_loops(logits, teacher_logits, temperature_student, temperature_teacher, entropy_scale):
    n_images, n_categories = logits.shape[1:]
    p = [[softmax(row, temperature_student) for row in view] for view in logits.tolist()]
    q = [[softmax(row, temperature_teacher) for row in view] for view in teacher_logits.tolist()]
    total, p_bar = 0.0, [0.0] * n_categories
    for view in range(2):
        guide = q[1 - view] if len(q) == 2 else q[0]
        for i in range(n_images):
            for k in range(n_categories):
                total -= guide[i][k] * math.log(p[view][i][k]) / (2 * n_images)
                p_bar[k] += p[view][i][k] / (2 * n_images)
    entropy = -sum(share * math.log(share) for share in p_bar)
    return total - entropy_scale * entropy


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("teacher", ["itself", "two views", "one view"])
def test_agrees_with_eq_5_written_as_loops(seed, teacher):
    logits, other = draw_batch(seed=seed).logits, draw_batch(seed=seed + 100).logits
    teacher_logits = {"itself": logits, "two views": other, "one view": other[:1]}[teacher]
    loss = DistillationLoss(0.2, 1.5)(logits, teacher_logits, 0.05)
    assert loss.item() == pytest.approx(eq_5_as_loops(logits, teacher_logits, 0.2, 0.05, 1.5), rel=1e-12)


def test_gradient_of_the_distillation_agrees_with_finite_differences():
    logits, teacher_logits = small_batch().logits.requires_grad_(), small_batch().logits.flip(1)
    assert torch.autograd.gradcheck(lambda x: DistillationLoss()(x, teacher_logits, 0.07), logits)


def test_teacher_gets_no_gradient():
    logits = draw_batch().logits
    assert torch.equal(
        gradient(lambda x: DistillationLoss()(x, x, 0.05), logits),
        gradient(lambda x: DistillationLoss()(x, logits, 0.05), logits),
    )
    teacher_logits = draw_batch(seed=1).logits.requires_grad_()
    DistillationLoss()(logits.requires_grad_(), teacher_logits, 0.05).backward()
    assert teacher_logits.grad is None


def test_target_is_the_other_view():
    sure = torch.tensor([[[1.0, -1.0]], [[-1.0, 1.0]]])  # the first view is category 0, the second category 1
    loss = DistillationLoss(entropy_scale=0.0)
    assert loss(sure, sure, 0.04).item() == pytest.approx(20.0)
    assert loss(sure, sure.flip(0), 0.04).item() == pytest.approx(0.0, abs=1e-6)


def test_one_view_of_the_teacher_guides_both_views_of_the_student():
    logits, weak = draw_batch().logits, draw_batch(seed=1).logits[:1]
    one, two = (DistillationLoss()(logits, w, 0.07) for w in (weak, weak.repeat(2, 1, 1)))
    assert one == two


def test_entropy_is_0_for_one_category_and_log_k_if_all_are_equal():
    one = torch.full((2, 4, 3), -1.0)
    one[:, :, 0] = 1.0
    assert DistillationLoss(0.01).mean_entropy(one).item() == pytest.approx(0.0, abs=1e-6)
    each = 2 * torch.eye(3).expand(2, 3, 3) - 1
    assert DistillationLoss().mean_entropy(each).item() == pytest.approx(math.log(3))


def test_zero_probability_causes_no_nan():
    logits = torch.tensor([0.0, -1e4, -1e4]).expand(2, 4, 3).clone()
    assert logits.div(0.1).softmax(-1)[0, 0, 1] == 0
    assert DistillationLoss()(logits, logits, 0.04).item() == 0
    assert gradient(lambda x: DistillationLoss()(x, x, 0.04), logits).isfinite().all()


def test_loss_ignores_order_of_images_and_views():
    loss, logits, teacher_logits = DistillationLoss(), draw_batch().logits, draw_batch(seed=1).logits
    order = torch.randperm(logits.shape[1], generator=torch.Generator().manual_seed(1))
    whole = loss(logits, teacher_logits, 0.05)
    assert torch.allclose(loss(logits[:, order], teacher_logits[:, order], 0.05), whole)
    assert torch.allclose(loss(logits.flip(0), teacher_logits.flip(0), 0.05), whole)


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_of_the_distillation_is_computed_in_single(dtype):
    logits = draw_batch(dtype=torch.float32).logits
    half = DistillationLoss()(logits.to(dtype), logits.to(dtype), 0.05)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(DistillationLoss()(logits, logits, 0.05).item(), rel=2e-2)


def test_single_losses_have_the_defaults_of_the_settings():
    settings = SimGCDSettings()
    assert SelfContrastiveLoss().temperature_unsup == settings.temperature_unsup == 1.0
    assert WeightedSupConLoss().temperature_sup == settings.temperature_sup == 0.07
    assert WeightedCrossEntropy().temperature_student == settings.temperature_student == 0.1
    assert DistillationLoss().temperature_student == settings.temperature_student
    assert DistillationLoss().entropy_scale == settings.entropy_scale == 2.0
    assert ContrastiveSettings().supervised_share == settings.supervised_share == 0.35


@pytest.mark.parametrize("wrong", [{"temperature_sup": 0.0}, {"supervised_share": 1.5}, {"entropy_scale": -1.0}])
def test_invalid_setting_is_rejected(wrong):
    with pytest.raises(JustrightError, match="Expected: "):
        SimGCDSettings(**wrong)
