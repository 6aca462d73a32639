"""Losses of SelEx: a hierarchy of clusters sets which images attract and which repel each other at every level."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize

from justright.losses.contrastive import ContrastiveSettings, WeightedSupConLoss
from justright.losses.reduction import Labels, LossParts, Projections, Scalar, Weights
from justright.utils.settings import SHARE, setting
from justright.utils.types import UNLABELED

Levels = Int[Tensor, "levels batch"]  # the cluster of each image, finest level first
Apart = Float[Tensor, "rows rows"]  # how far apart the clusters of two rows are: at least 0, a row with itself 0

MIN_DIM = 16  # numbers of a projection that the coarsest levels see at least
ROUNDING = 1e-12  # added to squared distances: the root of 0 has no gradient


@dataclass(frozen=True)
class SelExSettings(ContrastiveSettings):
    """Settings of the losses of SelEx; the smoothing as in its scripts for CUB and Cars."""

    # 0.5 for Aircraft and pets, 0.1 for generic sets
    smoothing: float = setting(1.0, "share of the target for images of other clusters, not the other view", SHARE)


def distance_logits(rows: Float[Tensor, "rows dim"], temperature: float) -> Float[Tensor, "rows rows"]:
    """-|x_i - x_n| / temperature for all pairs of rows, minus infinity for a row with itself.

    In at least single precision, whatever the input has.
    """
    with torch.autocast(rows.device.type, enabled=False):
        wide = rows.double()  # differences of near rows would be lost in single precision
        norms = wide.square().sum(dim=1)
        squared = (norms[:, None] + norms - 2 * wide @ wide.T).clamp(min=0.0) + ROUNDING
        itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
        logits = (-squared.sqrt() / temperature).masked_fill(itself, -torch.inf)
        return logits.to(torch.promote_types(rows.dtype, torch.float32))


class DistanceSupConLoss(WeightedSupConLoss):
    """Pull images of one class together, each anchor counted by its weight, by distances instead of cosines.

    mean_i  w_i * mean_{p in N_i}  -log softmax_{n != i}(-|x_i - x_n| / tau_s)[p]

    All else is as in `WeightedSupConLoss`; rows are taken as they are.
    """

    pairs = staticmethod(distance_logits)


class HierarchyLoss(nn.Module):
    """Pull images of one cluster together at every level, coarser ones by fewer numbers and with less weight.

        sum_k 2^-(k+1) * L(first max(16, d / 2^(k+1)) numbers of v; clusters of level k),     k = 0, 1, ...

    L is `DistanceSupConLoss` over all images and v the projection at length 1. The weight of an unlabeled image is 1.
    """

    def __init__(self, temperature_sup: float = ContrastiveSettings.temperature_sup):
        super().__init__()
        self.sup_contrastive = DistanceSupConLoss(temperature_sup)

    def forward(self, projections: Projections, levels: Levels, labels: Labels, weight: Weights) -> Scalar:
        """The sum over all levels."""
        v, weight = normalize(projections, dim=-1), torch.where(labels == UNLABELED, 1.0, weight)
        total = v.new_zeros(())
        for level, clusters in enumerate(levels):
            size = max(v.shape[-1] >> (level + 1), MIN_DIM)
            total = total + 0.5 ** (level + 1) * self.sup_contrastive(v[..., :size], clusters, weight)
        return total


class SmoothedContrastiveLoss(nn.Module):
    """Separate views, most of all those whose clusters are close.

        mean_i  -sum_{n != i} T_in log softmax_{n != i}(-|v_i - v_n| / tau_u)[n]
        T_in = (1 - smoothing) 1(n = i') + smoothing q_in,     q_in = apart_in / sum_m apart_im

    i runs over both views of all images, i' is the other view of i, and v is the projection at length 1. Images of
    other clusters may be near, images of the same cluster are separated. If no image is in another cluster, the target
    is i' alone. Weights do not act on it.
    """

    def __init__(self, settings: SelExSettings = SelExSettings()):
        super().__init__()
        self.settings = settings

    def forward(self, projections: Projections, apart: Apart) -> Scalar:
        """The mean over both views of all images."""
        n_rows = 2 * projections.shape[1]
        v = normalize(projections.flatten(0, 1), dim=-1)
        log_p = distance_logits(v, self.settings.temperature_unsup).log_softmax(dim=1)
        log_p = log_p.masked_fill(torch.eye(n_rows, dtype=torch.bool, device=v.device), 0.0)
        return -(self.targets(apart).to(log_p.dtype) * log_p).sum() / n_rows

    def targets(self, apart: Apart) -> Apart:
        """The matrix T; every row sums to 1."""
        smoothing, n_rows = self.settings.smoothing, len(apart)
        total = apart.sum(dim=1, keepdim=True)
        pair = torch.eye(n_rows, dtype=apart.dtype, device=apart.device).roll(n_rows // 2, dims=1)
        q = torch.where(total > 0, apart / total.clamp(min=torch.finfo(apart.dtype).tiny), pair)
        return (1 - smoothing) * pair + smoothing * q


def apart_by_clusters(levels: Levels) -> Apart:
    """sum_k 2^-k 1(c_k(i) != c_k(n)) for two views of each image."""
    clusters = levels.repeat(1, 2)
    return _sum_of_levels(clusters[:, :, None] != clusters[:, None, :])


def apart_by_reach(features: Float[Tensor, "2 batch dim"], reach: Float[Tensor, "levels batch"]) -> Apart:
    """sum_k 2^-k 1(|h_i - h_n| > reach_k(n)): whether i is farther from n than n's cluster is from the next."""
    distance = -distance_logits(features.detach().flatten(0, 1), 1.0)
    is_apart = distance > reach.repeat(1, 2)[:, None, :]
    return _sum_of_levels(is_apart & distance.isfinite())


def _sum_of_levels(is_apart: Tensor) -> Apart:
    shares = 0.5 ** torch.arange(len(is_apart), device=is_apart.device)
    return (shares[:, None, None] * is_apart).sum(dim=0)


class SelExObjective(nn.Module):
    """Learn a representation as SelEx does (Rastegar et al., ECCV 2024).

    L = (1 - lambda) L_u + lambda (L_s + L_h) / 2,     lambda the supervised share

    L_u is `SmoothedContrastiveLoss`, L_s `DistanceSupConLoss` by the labels, L_h `HierarchyLoss`.
    Terms: `smoothed_contrastive`, `sup_contrastive`, `hierarchy`.
    """

    def __init__(self, settings: SelExSettings = SelExSettings()):
        super().__init__()
        self.settings = settings
        self.smoothed_contrastive = SmoothedContrastiveLoss(settings)
        self.sup_contrastive = DistanceSupConLoss(settings.temperature_sup)
        self.hierarchy = HierarchyLoss(settings.temperature_sup)

    def forward(
        self, projections: Projections, levels: Levels, apart: Apart, labels: Labels, weight: Weights
    ) -> LossParts:
        """The total and its terms; -1 marks an unlabeled image."""
        unsup = self.smoothed_contrastive(projections, apart)
        sup = self.sup_contrastive(normalize(projections, dim=-1), labels, weight)
        of_levels = self.hierarchy(projections, levels, labels, weight)
        total = (1 - self.settings.supervised_share) * unsup + self.settings.supervised_share * (sup + of_levels) / 2
        terms = {"smoothed_contrastive": unsup, "sup_contrastive": sup, "hierarchy": of_levels}
        return LossParts(total, {name: value.detach() for name, value in terms.items()})
