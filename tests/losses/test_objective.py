from __future__ import annotations

import pytest
import torch
from tests.losses.batches import draw_batch, gradient, small_batch
from tests.losses.test_infonce import eq_1_as_loops
from tests.losses.test_supcon import eq_2_as_loops

from justright.losses import ContrastiveObjective, ContrastiveSettings


def test_mixes_eq_16_and_17_by_the_supervised_share():
    z, _, labels, weight = draw_batch()
    total, terms = ContrastiveObjective()(z, labels, weight)
    unsup, sup = eq_1_as_loops(z, 1.0), eq_2_as_loops(z, labels, weight, 0.07)
    assert total.item() == pytest.approx(0.65 * unsup + 0.35 * sup)
    assert terms["self_contrastive"].item() == pytest.approx(unsup)
    assert terms["sup_contrastive"].item() == pytest.approx(sup)


def test_a_batch_without_labeled_images_learns_from_the_views_alone():
    z, _, labels, weight = draw_batch((-1, -1, -1))
    objective = ContrastiveObjective(ContrastiveSettings(0.2, temperature_unsup=0.5, temperature_sup=0.1))
    assert objective(z, labels, weight).total.item() == pytest.approx(0.8 * eq_1_as_loops(z, 0.5))
    assert gradient(lambda z: objective(z, labels, weight).total, z).isfinite().all()


def test_terms_carry_no_gradient():
    z, _, labels, weight = draw_batch()
    parts = ContrastiveObjective()(z.requires_grad_(), labels, weight)
    assert parts.total.requires_grad
    assert not any(term.requires_grad for term in parts.terms.values())


def test_gradient_agrees_with_finite_differences():
    z, _, labels, weight = small_batch()
    assert torch.autograd.gradcheck(lambda z: ContrastiveObjective()(z, labels, weight).total, z.requires_grad_())
