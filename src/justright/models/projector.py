"""The projection head, which the contrastive losses look through and which is left behind after training."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.models.cosine import cosine_logits, random_vectors

INITIAL_SPREAD = 0.02  # standard deviation of the first weights, as in the public code


class ProjectionHead(nn.Module):
    """The map m(.) from a feature h to a projection z: three linear layers with GELU between them.

    z = W_3 gelu(W_2 gelu(W_1 h + b_1) + b_2) + b_3

    That is the head of SimGCD, 768 -> 2048 -> 2048 -> 256. GCD and XCon go on: n_out=65536 gives the cosines of z with
    so many learned vectors as projection, 17 million parameters more; a smaller n_out is not the original, but lighter.
    The losses scale projections to length 1 themselves.
    """

    def __init__(
        self,
        dim: int = 768,
        hidden_dim: int = 2048,
        out_dim: int = 256,
        n_out: int | None = None,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Linear(hidden_dim, hidden_dim),
            nn.GELU(),
            nn.Linear(hidden_dim, out_dim),
        )
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=INITIAL_SPREAD, generator=generator)
                nn.init.zeros_(layer.bias)
        self.vectors = None if n_out is None else random_vectors(n_out, out_dim, generator)

    def forward(self, features: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows out"]:
        """The projection of each feature."""
        z = self.layers(features)
        return z if self.vectors is None else cosine_logits(z, self.vectors)
