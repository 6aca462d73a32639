from __future__ import annotations

import pytest
import torch
from tests.losses.batches import draw_batch, gradient, small_batch
from tests.losses.test_classification import eq_4_as_loops, eq_5_as_loops
from tests.losses.test_contrastive import eq_1_as_loops, eq_2_as_loops

from justright.losses import ContrastiveObjective, ContrastiveSettings, SimGCDObjective, SimGCDSettings


def test_mixes_eq_16_and_17_by_the_supervised_share():
    z, _, labels, weight = draw_batch()
    total, terms = ContrastiveObjective()(z, labels, weight)
    unsup, sup = eq_1_as_loops(z, 1.0), eq_2_as_loops(z, labels, weight, 0.07)
    assert total.item() == pytest.approx(0.65 * unsup + 0.35 * sup)
    assert terms["self_contrastive"].item() == pytest.approx(unsup)
    assert terms["sup_contrastive"].item() == pytest.approx(sup)


def test_batch_without_labels_uses_views_only():
    z, _, labels, weight = draw_batch((-1, -1, -1))
    objective = ContrastiveObjective(ContrastiveSettings(0.2, temperature_unsup=0.5, temperature_sup=0.1))
    assert objective(z, labels, weight).total.item() == pytest.approx(0.8 * eq_1_as_loops(z, 0.5))
    assert gradient(lambda z: objective(z, labels, weight).total, z).isfinite().all()


def test_terms_carry_no_gradient():
    z, _, labels, weight = draw_batch()
    parts = ContrastiveObjective()(z.requires_grad_(), labels, weight)
    assert parts.total.requires_grad
    assert not any(term.requires_grad for term in parts.terms.values())


def test_contrastive_gradient_agrees_with_finite_differences():
    z, _, labels, weight = small_batch()
    assert torch.autograd.gradcheck(lambda z: ContrastiveObjective()(z, labels, weight).total, z.requires_grad_())


def eq_6_as_loops(batch, teacher_logits, temperature_teacher):
    z, logits, labels, weight = batch
    representation = 0.65 * eq_1_as_loops(z, 1.0) + 0.35 * eq_2_as_loops(z, labels, weight, 0.07)
    unsup = eq_5_as_loops(logits, teacher_logits, 0.1, temperature_teacher, 2.0)
    return representation + 0.65 * unsup + 0.35 * eq_4_as_loops(logits, labels, weight, 0.1)


def test_agrees_with_eq_6_written_as_loops_for_simgcd():
    batch = draw_batch()
    z, logits, labels, weight = batch
    total, _ = SimGCDObjective()(z, logits, logits, labels, weight, temperature_teacher=0.07)
    assert total.item() == pytest.approx(eq_6_as_loops(batch, logits, 0.07), rel=1e-12)


def test_agrees_with_eq_6_as_loops_with_a_mean_teacher():
    batch, weak = draw_batch(), draw_batch(seed=1).logits[:1]
    z, logits, labels, weight = batch
    total, _ = SimGCDObjective()(z, logits, weak, labels, weight, temperature_teacher=0.04)
    assert total.item() == pytest.approx(eq_6_as_loops(batch, weak, 0.04), rel=1e-12)


def test_every_option_reaches_its_loss():
    settings = SimGCDSettings(0.2, 0.9, 0.3, temperature_student=0.4, entropy_scale=1.5)
    objective = SimGCDObjective(settings)
    z, logits, labels, weight = draw_batch()
    total, terms = objective(z, logits, logits, labels, weight, temperature_teacher=0.06)
    expected = {
        "self_contrastive": eq_1_as_loops(z, 0.9),
        "sup_contrastive": eq_2_as_loops(z, labels, weight, 0.3),
        "classification": eq_4_as_loops(logits, labels, weight, 0.4),
        "distillation": eq_5_as_loops(logits, logits, 0.4, 0.06, 1.5),
        "mean_entropy": -eq_5_as_loops(logits, logits, 0.4, 0.06, 1.0) + eq_5_as_loops(logits, logits, 0.4, 0.06, 0.0),
    }
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(expected)
    shares = {"self_contrastive": 0.8, "sup_contrastive": 0.2, "classification": 0.2, "distillation": 0.8}
    assert total.item() == pytest.approx(sum(share * expected[name] for name, share in shares.items()))


@pytest.mark.parametrize("labels", [(-1, -1, -1), (-1, 2, -1), (0, 1, 1)], ids=["none", "one", "all"])
def test_any_number_of_labeled_images_is_allowed(labels):
    z, logits, labels, weight = draw_batch(labels)
    z.requires_grad_()
    logits.requires_grad_()
    SimGCDObjective()(z, logits, logits, labels, weight, temperature_teacher=0.07).total.backward()
    assert z.grad.isfinite().all()
    assert logits.grad.isfinite().all()


def test_gradient_of_all_losses_agrees_with_finite_differences():
    z, logits, labels, weight = small_batch()
    weak, objective = logits[:1].flip(1).clone(), SimGCDObjective()

    def total(z, logits):
        return objective(z, logits, weak, labels, weight, temperature_teacher=0.07).total

    assert torch.autograd.gradcheck(total, (z.requires_grad_(), logits.requires_grad_()), fast_mode=True)


def test_halved_weights_halve_supervised_terms_only():
    z, logits, labels, weight = draw_batch()
    _, whole = SimGCDObjective()(z, logits, logits, labels, weight, temperature_teacher=0.07)
    _, half = SimGCDObjective()(z, logits, logits, labels, weight / 2, temperature_teacher=0.07)
    for name in ("sup_contrastive", "classification"):
        assert torch.allclose(half[name], whole[name] / 2)
    for name in ("self_contrastive", "distillation", "mean_entropy"):
        assert half[name] == whole[name]


def test_weigh_contrastive_false_ignores_weights_in_eq_2():
    z, logits, labels, weight = draw_batch()
    objective = SimGCDObjective(SimGCDSettings(weigh_contrastive=False))
    _, terms = objective(z, logits, logits, labels, weight / 2, temperature_teacher=0.07)
    assert terms["sup_contrastive"].item() == pytest.approx(eq_2_as_loops(z, labels, torch.ones_like(weight), 0.07))
    assert terms["classification"].item() == pytest.approx(eq_4_as_loops(logits, labels, weight / 2, 0.1))
