"""Contrastive losses: self-supervised, where each image is its own class, and supervised by weighted labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from justright.losses.reduction import (
    Labels,
    LossParts,
    Projections,
    Scalar,
    Weights,
    at_least_float32,
    expect_views,
    labeled_mean,
)
from justright.utils.settings import POSITIVE, SHARE, check_ranges, setting
from justright.utils.types import UNLABELED


@dataclass(frozen=True)
class ContrastiveSettings:
    """Settings of the two contrastive losses; defaults as in the public code of GCD, XCon and SimGCD."""

    supervised_share: float = setting(0.35, "share of the losses that read labels (lambda)", SHARE)
    temperature_unsup: float = setting(1.0, "temperature of Eq. 1; the paper gives no number", POSITIVE)
    temperature_sup: float = setting(0.07, "temperature of Eq. 2", POSITIVE)

    def __post_init__(self) -> None:
        check_ranges(self)


def pair_logits(rows: Float[Tensor, "rows dim"], temperature: float) -> Float[Tensor, "rows rows"]:
    """cos(z_i, z_n) / temperature for all pairs, -infinity for a row with itself, in at least single precision."""
    # Autocast would compute the product in half precision, and dividing by 0.07 would magnify its error 14 times.
    with torch.autocast(rows.device.type, enabled=False):
        unit = normalize(at_least_float32(rows), dim=-1)
        logits = unit @ unit.T / temperature
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    return logits.masked_fill(itself, -torch.inf)


class SelfContrastiveLoss(nn.Module):
    """Pull the two views of an image together and apart from every other image. Eq. 1, and again as Eq. 16 for GCD.

    mean_i  -log softmax_{n != i}(z_i . z_n / tau_u)[i']

    i runs over both views of the images of B, labeled ones included, i' is the other view of i, n the other 2|B| - 1
    rows, and z has length 1. The paper prints one direction, from one view to the other; every public code is
    symmetric, as here. Weights do not act on it.
    """

    def __init__(self, temperature_unsup: float = ContrastiveSettings.temperature_unsup):
        super().__init__()
        self.temperature_unsup = temperature_unsup

    def forward(self, projections: Projections) -> Scalar:
        """The mean over both views of all images."""
        expect_views(projections, 2)
        n_images = projections.shape[1]
        logits = pair_logits(projections.flatten(0, 1), self.temperature_unsup)  # (2 * batch, 2 * batch)
        other_view = torch.arange(2 * n_images, device=logits.device).roll(n_images)
        return -logits.log_softmax(dim=1).gather(1, other_view[:, None]).mean()


class WeightedSupConLoss(nn.Module):
    """Pull images of one class together, each anchor counted by its weight. Eq. 2, and again as Eq. 17 for GCD.

    mean_i  w_i * mean_{p in N_i}  -log softmax_{n != i}(z_i . z_n / tau_s)[p]

    i and n run over all views of the labeled images B_l, N_i are the others with the label of i, and z has length 1.
    An image of weight 0 is no anchor, yet stays among the positives and negatives of the others.
    """

    pairs = staticmethod(pair_logits)

    def __init__(self, temperature_sup: float = ContrastiveSettings.temperature_sup):
        super().__init__()
        self.temperature_sup = temperature_sup

    def forward(
        self, projections: Float[Tensor, "views batch dim"], labels: Labels, weight: Weights | None = None
    ) -> Scalar:
        """The weighted mean over all views of the labeled images; 0 if there are none. Without weights each is 1."""
        expect_views(projections)
        return labeled_mean(self.per_image(projections, labels), labels, weight)

    def per_image(self, projections: Float[Tensor, "views batch dim"], labels: Labels) -> Float[Tensor, "views batch"]:
        """One value for each view of each image, not weighted yet; 0 for an unlabeled image."""
        is_labeled = labels != UNLABELED
        rows = projections[:, is_labeled]
        n_views, n_labeled = rows.shape[:2]
        classes = labels[is_labeled].repeat(n_views)
        logits = self.pairs(rows.flatten(0, 1), self.temperature_sup)  # (views * labeled, views * labeled)
        positive = classes[:, None] == classes
        positive.fill_diagonal_(False)
        log_p = logits.log_softmax(dim=1).masked_fill(~positive, 0.0)
        # With two views every row has a positive; with one view, an image alone in its class has none.
        per_anchor = -log_p.sum(dim=1) / positive.sum(dim=1).clamp(min=1)
        values = per_anchor.new_zeros(projections.shape[:2])
        values[:, is_labeled] = per_anchor.view(n_views, n_labeled)
        return values


class ContrastiveObjective(nn.Module):
    """Learn a representation from all images and from the labels among them.

    L_rep = (1 - lambda) L_rep^u + lambda L_rep^s,     lambda the supervised share

    Terms: `self_contrastive`, `sup_contrastive`.
    """

    def __init__(self, settings: ContrastiveSettings = ContrastiveSettings()):
        super().__init__()
        self.settings = settings
        self.self_contrastive = SelfContrastiveLoss(settings.temperature_unsup)
        self.sup_contrastive = WeightedSupConLoss(settings.temperature_sup)

    def forward(self, projections: Projections, labels: Labels, weight: Weights) -> LossParts:
        """The total and its terms; -1 marks an unlabeled image."""
        unsup = self.self_contrastive(projections)
        sup = self.sup_contrastive(projections, labels, weight)
        total = (1 - self.settings.supervised_share) * unsup + self.settings.supervised_share * sup
        return LossParts(total, {"self_contrastive": unsup.detach(), "sup_contrastive": sup.detach()})
