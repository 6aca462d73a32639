"""The one product that both contrastive losses start from."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize


def pair_logits(rows: Float[Tensor, "rows dim"], temperature: float) -> Float[Tensor, "rows rows"]:
    """cos(z_i, z_n) / temperature for all pairs of rows, minus infinity for a row with itself.

    In at least single precision, whatever precision comes in.
    """
    # Autocast would turn the product back to half precision, and dividing by 0.07 would magnify its error 14 times.
    with torch.autocast(rows.device.type, enabled=False):
        unit = normalize(rows.to(torch.promote_types(rows.dtype, torch.float32)), dim=-1)
        logits = unit @ unit.T / temperature
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    return logits.masked_fill(itself, -torch.inf)
