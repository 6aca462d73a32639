"""LegoGCD's addition to the classifier: what it says surely of known classes stays sure."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.losses.classification import Logits, SimGCDSettings
from justright.losses.reduction import Labels, Scalar, at_least_float32
from justright.utils.settings import NOT_NEGATIVE, POSITIVE, SHARE, setting
from justright.utils.types import UNLABELED


@dataclass(frozen=True)
class KnownEntropySettings(SimGCDSettings):
    """Settings of LegoGCD's loss (Cao et al., CVPR 2024); defaults as in its public code, but the scale is off."""

    known_scale: float = setting(0.0, "factor of LegoGCD's loss on sure known classes; 2 as published", NOT_NEGATIVE)
    known_threshold: float = setting(0.7, "how likely a known class must be for LegoGCD's loss to act", SHARE)
    known_temperature: float = setting(0.05, "temperature of LegoGCD's loss", POSITIVE)
    known_margin: float = setting(0.4, "weight of the mean prediction of past batches in LegoGCD's loss", NOT_NEGATIVE)
    known_momentum: float = setting(0.999, "momentum of the mean prediction of past batches", SHARE)


class KnownEntropyLoss(nn.Module):
    """Keep predictions of unlabeled images sharp where they surely name a known class.

        mean_i  m_i * -sum_k p_ik log softmax_k(logits_i / tau + margin log q),     p_i = softmax(logits_i / tau)

    i runs over all views of all images; m_i is 1 for an unlabeled image whose likeliest category is a known class, at
    least as likely as the threshold at the student's temperature, else 0. q is the usual prediction, a moving average
    of the mean of softmax(logits). Labels only say which images are unlabeled, so weights have nothing to act on.
    """

    def __init__(self, n_known: int, settings: KnownEntropySettings | None = None):
        super().__init__()
        self.n_known, self.settings = n_known, settings or KnownEntropySettings()

    def forward(self, logits: Logits, labels: Labels, usual: Float[Tensor, " categories"]) -> Scalar:
        """The mean over all views of all images; those that it does not act on count as 0."""
        logits = at_least_float32(logits)
        likely, category = (logits.detach() / self.settings.temperature_student).softmax(dim=-1).max(dim=-1)
        acts = (labels == UNLABELED) & (likely >= self.settings.known_threshold) & (category < self.n_known)
        sharp = logits / self.settings.known_temperature
        log_p = (sharp + self.settings.known_margin * usual.log()).log_softmax(dim=-1)
        return torch.where(acts, -(sharp.softmax(dim=-1) * log_p).sum(dim=-1), 0.0).mean()

    def moved(self, usual: Float[Tensor, " categories"], logits: Logits) -> Float[Tensor, " categories"]:
        """The usual prediction after one more batch."""
        momentum = self.settings.known_momentum
        now = logits.detach().to(usual.dtype).softmax(dim=-1).flatten(0, 1).mean(dim=0)
        return momentum * usual + (1 - momentum) * now
