"""A column of names that repeat, kept once each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from justright.data.image_set import NAME
from justright.types import Array


def name_column(names: Sequence[str | None], places: Int[Array, " rows"]) -> pa.Array:
    """For each row the name at its place in `names`, such as that of its class: four bytes a row.

    Names stand in the column in order of appearance, once each, whatever else `names` holds: the same rows make the
    same file.
    """
    return pa.array(names, pa.string()).take(pa.array(places.astype(np.int64))).dictionary_encode().cast(NAME)
