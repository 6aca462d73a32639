"""All that SimGCD and muGCD learn from: representation and classifier at once."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn

from justright.losses.classification import WeightedCrossEntropy
from justright.losses.distillation import DistillationLoss
from justright.losses.objective import ContrastiveObjective, LossParts
from justright.losses.settings import SimGCDSettings


class SimGCDObjective(nn.Module):
    """Learn representation and classifier together. Eq. 6.

    L = L_rep + L_cls,     L_cls = (1 - lambda) L_cls^u + lambda L_cls^l,     lambda the supervised share

    Terms: those of the representation, `classification`, `distillation` (the entropy term in it), `mean_entropy`.
    """

    def __init__(self, settings: SimGCDSettings | None = None):
        super().__init__()
        settings = settings or SimGCDSettings()
        self.supervised_share = settings.supervised_share
        self.representation = ContrastiveObjective(settings)
        self.classification = WeightedCrossEntropy(settings.temperature_student)
        self.distillation = DistillationLoss(settings.temperature_student, settings.entropy_scale)

    def forward(
        self,
        projections: Float[Tensor, "2 batch dim"],
        logits: Float[Tensor, "2 batch categories"],
        teacher_logits: Float[Tensor, "teacher_views batch categories"],
        labels: Int[Tensor, " batch"],
        weight: Float[Tensor, " batch"],
        *,
        temperature_teacher: float,
    ) -> LossParts:
        """The total and its terms; -1 marks an unlabeled image, SimGCD's teacher logits are the logits themselves."""
        representation = self.representation(projections, labels, weight)
        unsup = self.distillation(logits, teacher_logits, temperature_teacher)
        sup = self.classification(logits, labels, weight)
        classifier = (1 - self.supervised_share) * unsup + self.supervised_share * sup
        terms = {
            **representation.terms,
            "classification": sup.detach(),
            "distillation": unsup.detach(),
            "mean_entropy": self.distillation.mean_entropy(logits.detach()),
        }
        return LossParts(representation.total + classifier, terms)
