"""Pages of one run have the same map: t-SNE, which takes most of the time of a page, lays it out once a process."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest

from justright.report import feature_map


def remember_maps() -> Iterator[None]:
    """What a fixture of a whole session yields from; `tests/report/test_feature_map.py` lays out every map anew."""
    layout, found = feature_map._tsne, {}

    @functools.wraps(layout)
    def once(x: np.ndarray, seed: int) -> np.ndarray:
        key = (x.shape, x.tobytes(), seed)
        if key not in found:
            found[key] = layout(x, seed)
        return found[key].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_map, "_tsne", once)
        yield
