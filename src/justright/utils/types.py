"""Types of the arrays that stages exchange."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

Array: TypeAlias = np.ndarray

UNLABELED = -1
"""The label of an image whose class is unknown to the reader."""

Features: TypeAlias = Float[Array, "images dim"]
Labels: TypeAlias = Int[Array, " images"]
Mask: TypeAlias = Bool[Array, " images"]
