"""What LegoGCD and DebGCD add to SimGCD's classifier: heads and losses beside its own, off unless a scale is set."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.discovery.learner import Outputs
from justright.discovery.simgcd_config import SimGCDConfig
from justright.losses import DebiasedLoss, DetectorLoss, KnownEntropyLoss, LossParts
from justright.losses.heads import ProjectionHead, PrototypeClassifier
from justright.losses.reduction import Labels, Weights


class Additions(nn.Module):
    """Losses beside those of SimGCD, on the same features and logits; the first classifier still decides.

    L + known_scale L_known + debiased_scale L_debiased + detector_scale L_detector

    Known classes are those that target images may be called, the first `n_known` categories. Without any, what speaks
    of known classes is left out.
    """

    usual: Tensor

    def __init__(self, config: SimGCDConfig, n_categories: int, n_known: int, dim: int, generator: torch.Generator):
        super().__init__()
        self.config = config
        self.known_entropy = self.debiased = self.detector = None
        if config.known_scale and n_known:
            self.known_entropy = KnownEntropyLoss(n_known, config)
            self.register_buffer("usual", torch.full((n_categories,), 1 / n_categories))
        if config.debiased_scale:
            self.debiased = DebiasedLoss(config)
            self.second = PrototypeClassifier(n_categories, dim, generator)
        if config.debiased_scale and config.detector_scale and n_known:
            self.detector = DetectorLoss(config)
            sizes = config.hidden_dim, config.out_dim, 2 * n_known  # a vector for each class, and its opposite
            self.detecting = ProjectionHead(dim, *sizes, generator=generator)

    def forward(self, features: Float[Tensor, "*rows dim"]) -> dict[str, Tensor]:
        """Logits of the second classifier as `second`, margins of the detector as `margins`."""
        outputs = {}
        if self.debiased is not None:
            outputs["second"] = self.second(features)
        if self.detector is not None:
            for_class, against = self.detecting(features).chunk(2, dim=-1)
            outputs["margins"] = for_class - against
        return outputs

    def added_to(self, parts: LossParts, outputs: Outputs, labels: Labels, weight: Weights) -> LossParts:
        """The loss of a step with the additions; afterwards the usual prediction moves."""
        config, logits = self.config, outputs["logits"]
        total, terms = parts.total, dict(parts.terms)
        if self.known_entropy is not None:
            terms["known_entropy"] = self.known_entropy(logits, labels, self.usual)
            total = total + config.known_scale * terms["known_entropy"]
            self.usual.copy_(self.known_entropy.moved(self.usual, logits))
        certainty = torch.ones(logits.shape[:2], device=logits.device)
        if self.detector is not None:
            terms["detector"] = self.detector(outputs["margins"], labels, weight)
            total = total + config.detector_scale * terms["detector"]
            certainty = self.detector.certainty(outputs["margins"])
        if self.debiased is not None:
            terms["debiased"] = self.debiased(outputs["second"], logits, certainty, labels, weight)
            total = total + config.debiased_scale * terms["debiased"]
        return LossParts(total, {name: term.detach() for name, term in terms.items()})
