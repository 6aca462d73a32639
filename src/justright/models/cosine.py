"""A linear layer without lengths: rows and learned vectors count by their direction only."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize


def cosine_logits(
    rows: Float[Tensor, "*rows dim"], vectors: Float[Tensor, "vectors dim"]
) -> Float[Tensor, "*rows vectors"]:
    """(h / |h|) . (c_k / |c_k|) for every row h and every vector c_k, in at least single precision.

    The same function as a weight-normed linear layer whose gain is fixed at 1, with the same gradient.
    """
    # A cosine rounded to half precision is off by up to 0.004; a teacher's temperature of 0.04 makes that 0.1.
    with torch.autocast(rows.device.type, enabled=False):
        precision = torch.promote_types(torch.promote_types(rows.dtype, vectors.dtype), torch.float32)
        return normalize(rows.to(precision), dim=-1) @ normalize(vectors.to(precision), dim=-1).T


def random_vectors(n_vectors: int, dim: int, generator: torch.Generator | None) -> nn.Parameter:
    """Vectors drawn as torch draws those of a linear layer: their length does not act, but sets how fast they turn."""
    bound = dim**-0.5
    return nn.Parameter(torch.empty(n_vectors, dim).uniform_(-bound, bound, generator=generator))
