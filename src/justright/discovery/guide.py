"""What a pool of other kinds adds to training: a classifier of its own on the features that all images share."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.data.batches import BalancedBatches
from justright.losses import LossParts, WeightedCrossEntropy
from justright.losses.classification import Logits
from justright.losses.heads import PrototypeClassifier
from justright.losses.reduction import Labels, Weights
from justright.utils.types import Array


class Guide(nn.Module):
    """Classes of the pool as prototypes of their own, which no image of the target ever meets.

        L + lambda * scale * mean_i  w_i * -log softmax(logits_i / temperature_student)[y_i]

    i runs over both views of images of the pool: Eq. 4, with a classifier for the pool alone, beside the loss L of a
    method on the target and its own labels. It shapes the features that both share. lambda is the supervised share.
    """

    center: Tensor

    def __init__(
        self,
        batches: BalancedBatches,  # of the pool
        first_label: int,  # the number of its first class
        n_classes: int,
        dim: int,
        scale: float,  # factor of the loss, the supervised share in it
        generator: torch.Generator,
        center: Float[Array, " dim"] | None = None,  # what is taken off features that share a large part
    ):
        super().__init__()
        self.batches, self.first_label, self.scale = batches, first_label, scale
        self.register_buffer("center", torch.zeros(dim) if center is None else torch.from_numpy(center))
        self.classifier = PrototypeClassifier(n_classes, dim, generator)
        self.loss = WeightedCrossEntropy()

    def forward(self, features: Float[Tensor, "views guides dim"]) -> Float[Tensor, "views guides classes"]:
        """The cosine with the prototype of each class of the pool."""
        return self.classifier(features - self.center)

    def added_to(self, parts: LossParts, logits: Logits, labels: Labels, weight: Weights) -> LossParts:
        """The loss of a step, and that of the pool beside it."""
        guiding = self.loss(logits, labels - self.first_label, weight)
        return LossParts(parts.total + self.scale * guiding, parts.terms | {"guide": guiding.detach()})
