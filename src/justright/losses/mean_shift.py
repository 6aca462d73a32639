"""Losses of CMS: the contrastive loss after one step of mean shift towards the neighbors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from justright.losses.contrastive import ContrastiveSettings, WeightedSupConLoss
from justright.losses.reduction import Labels, LossParts, Projections, Scalar, Weights, at_least_float32
from justright.utils.settings import COUNT, POSITIVE, SHARE, setting

Memory = Float[Tensor, "memory dim"]  # unit projections of views of all images, as they were when the epoch began


@dataclass(frozen=True)
class CMSSettings(ContrastiveSettings):
    """Settings of the losses of CMS; defaults as in its scripts for fine-grained sets."""

    # 0.3 for CIFAR-100 and ImageNet-100
    temperature_unsup: float = setting(0.25, "temperature of the loss between shifted views", POSITIVE)
    n_neighbors: int = setting(8, "neighbors in mean shift", COUNT)
    shift: float = setting(0.5, "how far mean shift goes towards the mean of neighbors, as a share of the way", SHARE)


class MeanShiftLoss(nn.Module):
    """Pull the two views of an image together and apart from every other image, after one step of mean shift.

        mean_i  -z_i . z_i' / tau  +  log sum_{n not in {i, i'}} exp(z_i . z_n / tau)
        z_i = u_i / |u_i|,     u_i = (1 - shift) v_i + shift m_i

    i runs over both views of all images, i' is the other view of i, v is the projection at length 1, and m_i is the
    mean of the neighbors of v_i in the memory, all but the nearest, as a rule a view of the same image. Neither m nor
    |u| has a gradient. The pair itself is not below the logarithm, so the loss can be negative.
    """

    def __init__(self, settings: CMSSettings = CMSSettings()):
        super().__init__()
        self.settings = settings

    def forward(self, projections: Projections, memory: Memory) -> Scalar:
        """The mean over both views of all images; weights do not act on it."""
        n_images = projections.shape[1]
        with torch.autocast(projections.device.type, enabled=False):
            z = self.shifted(projections.flatten(0, 1), memory)
            logits = z @ z.T / self.settings.temperature_unsup
        row = torch.arange(2 * n_images, device=z.device)
        other_view = row.roll(n_images)
        near = logits[row, other_view]
        if n_images == 1:  # there are no negatives
            return -near.mean()
        is_own = (row[:, None] == row) | (other_view[:, None] == row)
        return (logits.masked_fill(is_own, -torch.inf).logsumexp(dim=1) - near).mean()

    def shifted(self, rows: Float[Tensor, "rows dim"], memory: Memory) -> Float[Tensor, "rows dim"]:
        """z of each row, in at least single precision."""
        share, n_neighbors = self.settings.shift, min(self.settings.n_neighbors, len(memory) - 1)
        v = normalize(at_least_float32(rows), dim=-1)
        with torch.no_grad():
            nearest = (v @ memory.to(v.dtype).T).topk(n_neighbors + 1, dim=1).indices[:, 1:]
            mean = memory[nearest].mean(dim=1)
        u = (1 - share) * v + share * mean
        return u / u.detach().norm(dim=1, keepdim=True).clamp(min=1e-12)


class CMSObjective(nn.Module):
    """Learn a representation as CMS does (Choi et al., CVPR 2024).

    L = (1 - lambda) L_ms + lambda L_rep^s,     lambda the supervised share, L_rep^s of Eq. 2 on views as they are

    Terms: `mean_shift`, `sup_contrastive`.
    """

    def __init__(self, settings: CMSSettings = CMSSettings()):
        super().__init__()
        self.settings = settings
        self.mean_shift = MeanShiftLoss(settings)
        self.sup_contrastive = WeightedSupConLoss(settings.temperature_sup)

    def forward(self, projections: Projections, memory: Memory, labels: Labels, weight: Weights) -> LossParts:
        """The total and its terms; -1 marks an unlabeled image."""
        unsup = self.mean_shift(projections, memory)
        sup = self.sup_contrastive(projections, labels, weight)
        total = (1 - self.settings.supervised_share) * unsup + self.settings.supervised_share * sup
        return LossParts(total, {"mean_shift": unsup.detach(), "sup_contrastive": sup.detach()})
