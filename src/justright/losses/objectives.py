"""Losses in their shares: the contrastive ones of GCD and XCon, and all that SimGCD and muGCD learn from."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.losses.classification import (
    DistillationLoss,
    SimGCDSettings,
    StudentLogits,
    TeacherLogits,
    WeightedCrossEntropy,
)
from justright.losses.contrastive import ContrastiveSettings, SelfContrastiveLoss, WeightedSupConLoss
from justright.losses.reduction import Labels, Scalar, Weights

Projections = Float[Tensor, "2 batch dim"]


class LossParts(NamedTuple):
    """What a step minimizes, and the terms it is made of, before their shares and without gradient, for the log."""

    total: Scalar
    terms: dict[str, Tensor]


class ContrastiveObjective(nn.Module):
    """Learn a representation from all images and from the labels among them.

    L_rep = (1 - lambda) L_rep^u + lambda L_rep^s,     lambda the supervised share

    Terms: `self_contrastive`, `sup_contrastive`.
    """

    def __init__(self, settings: ContrastiveSettings | None = None):
        super().__init__()
        self.settings = settings = settings or ContrastiveSettings()
        self.self_contrastive = SelfContrastiveLoss(settings.temperature_unsup)
        self.sup_contrastive = WeightedSupConLoss(settings.temperature_sup)

    def forward(self, projections: Projections, labels: Labels, weight: Weights) -> LossParts:
        """The total and its terms; -1 marks an unlabeled image."""
        unsup = self.self_contrastive(projections)
        sup = self.sup_contrastive(projections, labels, weight)
        total = (1 - self.settings.supervised_share) * unsup + self.settings.supervised_share * sup
        return LossParts(total, {"self_contrastive": unsup.detach(), "sup_contrastive": sup.detach()})


class SimGCDObjective(nn.Module):
    """Learn representation and classifier together. Eq. 6.

    L = L_rep + L_cls,     L_cls = (1 - lambda) L_cls^u + lambda L_cls^l,     lambda the supervised share

    Terms: those of the representation, `classification`, `distillation` (the entropy term in it), `mean_entropy`.
    """

    def __init__(self, settings: SimGCDSettings | None = None):
        super().__init__()
        self.settings = settings = settings or SimGCDSettings()
        self.representation = ContrastiveObjective(settings)
        self.classification = WeightedCrossEntropy(settings.temperature_student)
        self.distillation = DistillationLoss(settings.temperature_student, settings.entropy_scale)

    def forward(
        self,
        projections: Projections,
        logits: StudentLogits,
        teacher_logits: TeacherLogits,
        labels: Labels,
        weight: Weights,
        *,
        temperature_teacher: float,
    ) -> LossParts:
        """The total and its terms; -1 marks an unlabeled image, SimGCD's teacher logits are the logits themselves."""
        in_pairs = weight if self.settings.weigh_contrastive else torch.ones_like(weight)
        representation = self.representation(projections, labels, in_pairs)
        unsup = self.distillation(logits, teacher_logits, temperature_teacher)
        sup = self.classification(logits, labels, weight)
        classifier = (1 - self.settings.supervised_share) * unsup + self.settings.supervised_share * sup
        terms = {
            **representation.terms,
            "classification": sup.detach(),
            "distillation": unsup.detach(),
            "mean_entropy": self.distillation.mean_entropy(logits.detach()),
        }
        return LossParts(representation.total + classifier, terms)
