"""The two contrastive losses in one: all that GCD and XCon learn from, and half of SimGCD."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from justright.losses.infonce import SelfContrastiveLoss
from justright.losses.settings import ContrastiveSettings
from justright.losses.supcon import WeightedSupConLoss


class LossParts(NamedTuple):
    """What a step minimizes, and the terms it is made of, before their shares and without gradient, for the log."""

    total: Float[Tensor, ""]
    terms: dict[str, Tensor]


class ContrastiveObjective(nn.Module):
    """Learn a representation from all images and from the labels among them.

    L_rep = (1 - lambda) L_rep^u + lambda L_rep^s,     lambda the supervised share

    Terms: `self_contrastive`, `sup_contrastive`.
    """

    def __init__(self, settings: ContrastiveSettings | None = None):
        super().__init__()
        settings = settings or ContrastiveSettings()
        self.supervised_share = settings.supervised_share
        self.self_contrastive = SelfContrastiveLoss(settings.temperature_unsup)
        self.sup_contrastive = WeightedSupConLoss(settings.temperature_sup)

    def forward(
        self, projections: Float[Tensor, "2 batch dim"], labels: Int[Tensor, " batch"], weight: Float[Tensor, " batch"]
    ) -> LossParts:
        """The total and its terms; -1 marks an unlabeled image."""
        unsup = self.self_contrastive(projections)
        sup = self.sup_contrastive(projections, labels, weight)
        total = (1 - self.supervised_share) * unsup + self.supervised_share * sup
        return LossParts(total, {"self_contrastive": unsup.detach(), "sup_contrastive": sup.detach()})
