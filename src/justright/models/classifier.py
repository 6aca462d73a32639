"""The classifier of SimGCD and muGCD: one learned prototype for each category."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.models.cosine import cosine_logits, random_vectors


class PrototypeClassifier(nn.Module):
    """How close a feature lies to each prototype, and which category is therefore likely. Eq. 3.

    p_k = softmax_k((h / |h|) . (c_k / |c_k|) / temperature)

    Called, it gives the cosines in [-1, 1], for the losses to divide by their own temperatures; there is no bias.
    Both lengths are divided away, so a category seen often cannot win by a long prototype.
    """

    def __init__(self, n_categories: int, dim: int = 768, generator: torch.Generator | None = None):
        super().__init__()
        self.prototypes = random_vectors(n_categories, dim, generator)

    def forward(self, features: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows categories"]:
        """The cosine of each feature with each prototype."""
        return cosine_logits(features, self.prototypes)

    def probability(
        self, features: Float[Tensor, "*rows dim"], temperature: float
    ) -> Float[Tensor, "*rows categories"]:
        """The share of each category in a prediction: the lower the temperature, the sharper."""
        return (self(features) / temperature).softmax(dim=-1)
