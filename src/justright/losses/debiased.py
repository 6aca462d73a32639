"""DebGCD's addition to the classifier: a second one that learns labels and sure predictions alike."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from justright.losses.classification import Logits, WeightedCrossEntropy
from justright.losses.reduction import Labels, Scalar, Weights
from justright.settings import NOT_NEGATIVE, POSITIVE, SHARE, refuse_out_of_range, setting
from justright.types import UNLABELED


@dataclass(frozen=True)
class DebiasedSettings:
    """Settings of the second classifier of DebGCD (Liu and Han, ICLR 2025); off by default, else as in the paper."""

    # 1 in the paper, 4 in its code
    debiased_scale: float = setting(0.0, "factor of DebGCD's second classifier; 1 as published", NOT_NEGATIVE)
    debiased_share: float = setting(0.5, "share of unlabeled images in the loss of DebGCD's second classifier", SHARE)
    debiased_threshold: float = setting(
        0.85, "how likely a category must be to count as a label for DebGCD's second classifier", SHARE
    )
    debiased_temperature: float = setting(0.1, "temperature of DebGCD's second classifier", POSITIVE)

    def __post_init__(self) -> None:
        refuse_out_of_range(self)


class DebiasedLoss(nn.Module):
    """Teach a second classifier hard labels of both kinds, so that known and new classes shape features alike.

        (1 - share) mean_l w_i CE(h_i / T, y_i)  +  share mean_u 1(max p_i >= threshold) c_i CE(h_i / T, argmax p_i)

    l runs over all views of labeled images and u of unlabeled ones; h are the logits of the second classifier,
    p = softmax(logits / temperature_student) those of the first, without gradient, c_i how sure the detector is of
    image i. The first one decides in the end.
    """

    def __init__(self, settings: DebiasedSettings | None = None, temperature_student: float = 0.1):
        super().__init__()
        self.settings, self.temperature_student = settings or DebiasedSettings(), temperature_student
        self.of_labels = WeightedCrossEntropy(self.settings.debiased_temperature)

    def forward(
        self, second: Logits, logits: Logits, certainty: Float[Tensor, "views batch"], labels: Labels, weight: Weights
    ) -> Scalar:
        """Both means in their shares; one without images is 0."""
        is_unlabeled = labels == UNLABELED
        precision = torch.promote_types(logits.dtype, torch.float32)
        likely, category = (logits.detach().to(precision) / self.temperature_student).softmax(dim=-1).max(dim=-1)
        rows = second.to(precision) / self.settings.debiased_temperature
        surprise = cross_entropy(rows.flatten(0, 1), category.flatten(), reduction="none").view(likely.shape)
        acts = is_unlabeled & (likely >= self.settings.debiased_threshold)
        n_rows = len(logits) * is_unlabeled.sum().clamp(min=1)
        unlabeled = torch.where(acts, certainty * surprise, 0.0).sum() / n_rows
        share = self.settings.debiased_share
        return (1 - share) * self.of_labels(second, labels, weight) + share * unlabeled
