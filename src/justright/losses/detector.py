"""DebGCD's detector: for each known class, whether an image belongs to it or to none that is known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from justright.losses.reduction import Labels, Scalar, Weights, labeled_mean
from justright.settings import NOT_NEGATIVE, POSITIVE, refuse_out_of_range, setting
from justright.types import UNLABELED

Margins = Float[Tensor, "2 batch known"]
"""How much closer an image is to a known class than to its opposite: a difference of two cosines."""


@dataclass(frozen=True)
class DetectorSettings:
    """Settings of the detector of DebGCD (Liu and Han, ICLR 2025)."""

    detector_scale: float = setting(0.01, "factor of DebGCD's detector, where debiased_scale is not 0", NOT_NEGATIVE)
    detector_temperature: float = setting(0.1, "temperature of the detector", POSITIVE)
    detector_entropy: float = setting(0.1, "weight of the detector's entropy on unlabeled images", NOT_NEGATIVE)
    detector_agreement: float = setting(
        1.0, "weight of the detector's difference between two views of unlabeled images", NOT_NEGATIVE
    )

    def __post_init__(self) -> None:
        refuse_out_of_range(self)


class DetectorLoss(nn.Module):
    """Tell the own class of a labeled image from all others, and decide on unlabeled ones, alike for both views.

        mean_l  w_i (-log s_iy + max_{k != y} -log(1 - s_ik))
            +  entropy mean_u mean_k H(s_ik)  +  agreement mean_u sum_k 2 (s_ik - s_i'k)^2

    l runs over both views of labeled images and u of unlabeled ones, i' is the other view, s = sigmoid(margin / tau) is
    how likely an image is of a known class, against being of none. Over two outcomes the softmax is that sigmoid.
    """

    def __init__(self, settings: DetectorSettings | None = None):
        super().__init__()
        self.settings = settings or DetectorSettings()

    def forward(self, margins: Margins, labels: Labels, weight: Weights) -> Scalar:
        """The sum of all three parts; one without images is 0."""
        logits = self._logits(margins)
        is_unlabeled = labels == UNLABELED
        n_rows = is_unlabeled.sum().clamp(min=1)
        s = logits.sigmoid()
        entropy = -(s * logsigmoid(logits) + (1 - s) * logsigmoid(-logits)).mean(dim=-1).mean(dim=0)
        apart = 2 * (s[0] - s[1]).square().sum(dim=-1)
        unlabeled = self.settings.detector_entropy * entropy + self.settings.detector_agreement * apart
        return labeled_mean(self._of_labels(logits, labels), labels, weight) + unlabeled[is_unlabeled].sum() / n_rows

    def _of_labels(self, logits: Margins, labels: Labels) -> Float[Tensor, "2 batch"]:
        own = torch.arange(logits.shape[-1], device=labels.device) == labels[:, None]
        is_own = -(logsigmoid(logits) * own).sum(dim=-1)
        return is_own + (-logsigmoid(-logits)).masked_fill(own, 0.0).amax(dim=-1)

    def certainty(self, margins: Margins) -> Float[Tensor, "2 batch"]:
        """How sure it is whether an image is of any known class: |2u - 1|, u of the likeliest one; no gradient."""
        known = self._logits(margins.detach()).sigmoid().amax(dim=-1)
        return (1 - 2 * known).abs()

    def _logits(self, margins: Margins) -> Margins:
        return margins.to(torch.promote_types(margins.dtype, torch.float32)) / self.settings.detector_temperature
