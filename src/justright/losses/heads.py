"""Heads on top of a backbone: the projection head and the prototype classifier."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import normalize

INITIAL_SPREAD = 0.02  # standard deviation of the first weights, as in the public code


def cosine_logits(
    rows: Float[Tensor, "*rows dim"], vectors: Float[Tensor, "vectors dim"]
) -> Float[Tensor, "*rows vectors"]:
    """(h / |h|) . (c_k / |c_k|) for every row h and every vector c_k, in at least single precision.

    The same function as a weight-normed linear layer whose gain is fixed at 1, with the same gradient.
    """
    # A cosine in half precision is off by up to 0.004, and divided by a teacher's temperature of 0.04 by up to 0.1.
    with torch.autocast(rows.device.type, enabled=False):
        precision = torch.promote_types(torch.promote_types(rows.dtype, vectors.dtype), torch.float32)
        return normalize(rows.to(precision), dim=-1) @ normalize(vectors.to(precision), dim=-1).T


def random_vectors(n_vectors: int, dim: int, generator: Generator | None) -> nn.Parameter:
    """Vectors drawn as the weights of torch's linear layer; only their direction acts, their length slows learning."""
    bound = dim**-0.5
    return nn.Parameter(torch.empty(n_vectors, dim).uniform_(-bound, bound, generator=generator))


class ProjectionHead(nn.Module):
    """The map m(.) from a feature h to a projection z: three linear layers with GELU between them.

    z = W_3 gelu(W_2 gelu(W_1 h + b_1) + b_2) + b_3

    That is the head of SimGCD, 768 -> 2048 -> 2048 -> 256. GCD and XCon have one more layer: with n_out=65536 the
    projection is the cosines of z with as many learned vectors, 17 million more parameters; a smaller n_out is lighter,
    but not the original. The losses scale projections to length 1 themselves.
    """

    def __init__(
        self, dim: int, hidden_dim: int, out_dim: int, n_out: int | None = None, generator: Generator | None = None
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


class PrototypeClassifier(nn.Module):
    """Cosine similarity of a feature to each prototype. Eq. 3.

    p_k = softmax_k((h / |h|) . (c_k / |c_k|) / temperature)

    It returns the cosines in [-1, 1]; the losses divide by their own temperatures and take the softmax
    (`losses.classification.log_probability`). There is no bias, and the length of a prototype has no effect.
    """

    def __init__(self, n_categories: int, dim: int, generator: Generator | None = None):
        super().__init__()
        self.prototypes = random_vectors(n_categories, dim, generator)

    def forward(self, features: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows categories"]:
        """The cosine of each feature with each prototype."""
        return cosine_logits(features, self.prototypes)
