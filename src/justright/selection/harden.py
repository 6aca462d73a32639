"""From a soft weight to a decision."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from justright.types import Array


def harden(weight: Float[Array, " n"], threshold: float) -> Float[Array, " n"]:
    """1 where the weight exceeds the threshold, else 0 (Tab. 6).

    The threshold belongs to the weights as the density gives them, before any normalization.
    """
    return (weight > threshold).astype(np.float64)
