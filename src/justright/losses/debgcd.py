"""What DebGCD adds to SimGCD: a second classifier that learns sure predictions like labels, and a detector.

The detector tells for each known class whether an image belongs to it or to none that is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, logsigmoid

from justright.losses.classification import Logits, SimGCDSettings, WeightedCrossEntropy
from justright.losses.reduction import Labels, Scalar, Weights, at_least_float32, labeled_mean
from justright.utils.settings import NOT_NEGATIVE, POSITIVE, SHARE, setting
from justright.utils.types import UNLABELED

Margins = Float[Tensor, "2 batch known"]
"""How much closer an image is to a known class than to its opposite: a difference of two cosines."""


@dataclass(frozen=True)
class DebGCDSettings(SimGCDSettings):
    """Settings of DebGCD's additions (Liu and Han, ICLR 2025); off by default, else as in the paper."""

    detector_scale: float = setting(0.01, "factor of DebGCD's detector, where debiased_scale is not 0", NOT_NEGATIVE)
    detector_temperature: float = setting(0.1, "temperature of the detector", POSITIVE)
    detector_entropy: float = setting(0.1, "weight of the detector's entropy on unlabeled images", NOT_NEGATIVE)
    detector_agreement: float = setting(
        1.0, "weight of the detector's difference between two views of unlabeled images", NOT_NEGATIVE
    )
    # 1 in the paper, 4 in its code
    debiased_scale: float = setting(0.0, "factor of DebGCD's second classifier; 1 as published", NOT_NEGATIVE)
    debiased_share: float = setting(0.5, "share of unlabeled images in the loss of DebGCD's second classifier", SHARE)
    debiased_threshold: float = setting(
        0.85, "how likely a category must be to count as a label for DebGCD's second classifier", SHARE
    )
    debiased_temperature: float = setting(0.1, "temperature of DebGCD's second classifier", POSITIVE)


class DebiasedLoss(nn.Module):
    """Teach a second classifier hard labels of both kinds, so that known and new classes shape features alike.

        (1 - share) mean_l w_i CE(h_i / T, y_i)  +  share mean_u 1(max p_i >= threshold) c_i CE(h_i / T, argmax p_i)

    l runs over all views of labeled images and u of unlabeled ones; h are the logits of the second classifier,
    p = softmax(logits / temperature_student) those of the first, without gradient, c_i how sure the detector is of
    image i. The first one decides in the end.
    """

    def __init__(self, settings: DebGCDSettings | None = None):
        super().__init__()
        self.settings = settings or DebGCDSettings()
        self.of_labels = WeightedCrossEntropy(self.settings.debiased_temperature)

    def forward(
        self, second: Logits, logits: Logits, certainty: Float[Tensor, "views batch"], labels: Labels, weight: Weights
    ) -> Scalar:
        """Both means in their shares; one without images is 0."""
        is_unlabeled, share = labels == UNLABELED, self.settings.debiased_share
        predicted = at_least_float32(logits.detach()) / self.settings.temperature_student
        likely, category = predicted.softmax(dim=-1).max(dim=-1)
        rows = at_least_float32(second) / self.settings.debiased_temperature
        losses = cross_entropy(rows.flatten(0, 1), category.flatten(), reduction="none").view(likely.shape)
        acts = is_unlabeled & (likely >= self.settings.debiased_threshold)
        n_rows = len(logits) * is_unlabeled.sum().clamp(min=1)
        unlabeled = torch.where(acts, certainty * losses, 0.0).sum() / n_rows
        return (1 - share) * self.of_labels(second, labels, weight) + share * unlabeled


class DetectorLoss(nn.Module):
    """Tell the own class of a labeled image from all others, and decide on unlabeled ones, alike for both views.

        mean_l  w_i (-log s_iy + max_{k != y} -log(1 - s_ik))
            +  entropy mean_u mean_k H(s_ik)  +  agreement mean_u sum_k 2 (s_ik - s_i'k)^2

    l runs over both views of labeled images and u of unlabeled ones, i' is the other view, s = sigmoid(margin / tau) is
    how likely an image is of a known class, against being of none. Over two outcomes the softmax is that sigmoid.
    """

    def __init__(self, settings: DebGCDSettings | None = None):
        super().__init__()
        self.settings = settings or DebGCDSettings()

    def forward(self, margins: Margins, labels: Labels, weight: Weights) -> Scalar:
        """The sum of all three parts; one without images is 0."""
        logits = at_least_float32(margins) / self.settings.detector_temperature
        own = torch.arange(logits.shape[-1], device=labels.device) == labels[:, None]
        of_own = -(logsigmoid(logits) * own).sum(dim=-1)
        labeled = of_own + (-logsigmoid(-logits)).masked_fill(own, 0.0).amax(dim=-1)
        is_unlabeled, s = labels == UNLABELED, logits.sigmoid()
        entropy = -(s * logsigmoid(logits) + (1 - s) * logsigmoid(-logits)).mean(dim=-1).mean(dim=0)
        apart = 2 * (s[0] - s[1]).square().sum(dim=-1)
        unlabeled = self.settings.detector_entropy * entropy + self.settings.detector_agreement * apart
        n_rows = is_unlabeled.sum().clamp(min=1)
        return labeled_mean(labeled, labels, weight) + unlabeled[is_unlabeled].sum() / n_rows

    def certainty(self, margins: Margins) -> Float[Tensor, "2 batch"]:
        """How sure it is whether an image is of any known class: |2u - 1|, u of the likeliest one; no gradient."""
        likely = (at_least_float32(margins.detach()) / self.settings.detector_temperature).sigmoid().amax(dim=-1)
        return (1 - 2 * likely).abs()
