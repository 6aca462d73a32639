"""Losses of the classifier: weighted cross-entropy on labels, and self-distillation between views."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from justright.losses.contrastive import ContrastiveObjective, ContrastiveSettings
from justright.losses.reduction import Labels, LossParts, Projections, Scalar, Weights, at_least_float32, labeled_mean
from justright.utils.settings import NOT_NEGATIVE, POSITIVE, YES_OR_NO, setting
from justright.utils.types import UNLABELED

Logits = Float[Tensor, "views batch categories"]
StudentLogits = Float[Tensor, "2 batch categories"]
TeacherLogits = Float[Tensor, "teacher_views batch categories"]


@dataclass(frozen=True)
class SimGCDSettings(ContrastiveSettings):
    """Settings of all losses of SimGCD."""

    # the paper prints tau_s here too, yet the two were never equal
    temperature_student: float = setting(0.1, "temperature of the classifier", POSITIVE)
    # as for CUB; SimGCD's scripts have 1 for Cars, Aircraft, Herbarium and ImageNet, 4 for CIFAR-100
    entropy_scale: float = setting(2.0, "weight of the mean entropy in Eq. 5 (epsilon)", NOT_NEGATIVE)
    weigh_contrastive: bool = setting(True, "weights act in Eq. 2 too; in the public code in Eq. 4 only", YES_OR_NO)


class WeightedCrossEntropy(nn.Module):
    """Cross-entropy on the labels, each image counted by its weight. Eq. 4.

    mean_i  w_i * -log softmax(logits_i / temperature_student)[y_i]

    i runs over all views of the labeled images B_l. The logits are the cosines of the prototype classifier.
    """

    def __init__(self, temperature_student: float = SimGCDSettings.temperature_student):
        super().__init__()
        self.temperature_student = temperature_student

    def forward(self, logits: Logits, labels: Labels, weight: Weights | None = None) -> Scalar:
        """The weighted mean over all views of the labeled images; 0 if there are none. Without weights each is 1.

        An image of weight 0 counts among them and adds nothing, so its class need not have a prototype.
        """
        classes = labels if weight is None else labels.where((labels == UNLABELED) | (weight > 0), 0)
        return labeled_mean(self.per_image(logits, classes), labels, weight)

    def per_image(self, logits: Logits, labels: Labels) -> Float[Tensor, "views batch"]:
        """One value for each view of each image, not weighted yet; 0 for an unlabeled image."""
        rows = at_least_float32(logits.flatten(0, 1)) / self.temperature_student
        classes = labels.long().repeat(len(logits))
        return cross_entropy(rows, classes, ignore_index=UNLABELED, reduction="none").view(logits.shape[:2])


class DistillationLoss(nn.Module):
    """Predict the teacher's output for another view, using all categories on average. Eq. 5.

    mean_i  -sum_k q_i'k log p_ik  -  epsilon H(p_bar),     H(p) = -sum_k p_k log p_k

    i runs over both views of all images, labeled ones included; p = softmax(logits / temperature_student), p_bar is
    its mean over i, and q = softmax(teacher logits / temperature_teacher) of the other view i', without gradient.

    Two views of the teacher are swapped; pass the student's own logits for SimGCD. One view, such as the weak view of
    muGCD's mean teacher, guides both views of the student. SimGCD's code adds the constant epsilon log K.
    """

    def __init__(
        self,
        temperature_student: float = SimGCDSettings.temperature_student,
        entropy_scale: float = SimGCDSettings.entropy_scale,
    ):
        super().__init__()
        self.temperature_student, self.entropy_scale = temperature_student, entropy_scale

    def forward(self, logits: StudentLogits, teacher_logits: TeacherLogits, temperature_teacher: float) -> Scalar:
        """The mean over both views of all images, less the scaled entropy of the mean prediction."""
        # flip swaps two views and leaves a single one as it is, which then broadcasts to both views of the student
        q = log_probability(teacher_logits.detach(), temperature_teacher).exp().flip(0)
        guided = -(q * log_probability(logits, self.temperature_student)).sum(dim=-1).mean()
        return guided - self.entropy_scale * self.mean_entropy(logits)

    def mean_entropy(self, logits: StudentLogits) -> Scalar:
        """H(p_bar), from 0 if all rows have one category to log K if all categories are used equally."""
        log_p = log_probability(logits, self.temperature_student).flatten(0, 1)
        # The mean is computed from logarithms: p_bar may underflow to 0, where p log p and its gradient are NaN.
        log_p_bar = log_p.logsumexp(dim=0) - math.log(len(log_p))
        return -(log_p_bar.exp() * log_p_bar).sum()


def log_probability(logits: Logits, temperature: float) -> Logits:
    """The logarithm of p_k = softmax_k(logit_k / temperature), Eq. 3 for the cosines of a `PrototypeClassifier`."""
    return (at_least_float32(logits) / temperature).log_softmax(dim=-1)


class SimGCDObjective(nn.Module):
    """Learn representation and classifier together. Eq. 6.

    L = L_rep + L_cls,     L_cls = (1 - lambda) L_cls^u + lambda L_cls^l,     lambda the supervised share

    Terms: those of the representation, `classification`, `distillation` (the entropy term in it), `mean_entropy`.
    """

    def __init__(self, settings: SimGCDSettings = SimGCDSettings()):
        super().__init__()
        self.settings = settings
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
