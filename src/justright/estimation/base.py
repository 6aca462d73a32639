"""What every way to count categories has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from justright.errors import DegenerateError
from justright.progress import Track, silent
from justright.types import Array

PoolArrays = tuple[Any, Any]
"""Features (images x dim) and labels (images) of classes of other kinds than those to be counted."""


class CategoryCounter(ABC):
    """Estimates K, the number of categories among labeled and unlabeled images.

    Attributes:
        n_categories_: the estimate.
        curve_: what was looked at on the way, one point (x, y) per line.
        curve_axes: the names of its axes.
        is_interval_quick: whether an interval takes little time beside the estimate.
    """

    curve_axes: ClassVar[tuple[str, str]]
    is_interval_quick: ClassVar[bool] = False
    n_categories_: int
    curve_: Float[Array, "points 2"]

    @abstractmethod
    def fit(self, features: Any, labels: Any, track: Track = silent, pool: PoolArrays | None = None) -> CategoryCounter:
        """Estimate K from features (images x dim) and labels (images), -1 for an unlabeled image.

        Where no image is labeled, labels may be None, and a `pool` of other kinds tells what classes look like. Its
        classes are not counted.
        """

    @abstractmethod
    def interval(self, level: float = 0.9, *, track: Track = silent) -> tuple[int, int]:
        """The lowest and highest K that the estimate leaves open, after `fit`. It always holds the estimate."""


def middle_interval(estimates: Sequence[int], level: float, holding: int) -> tuple[int, int]:
    """The quantiles (1 - level)/2 and (1 + level)/2 of whole numbers, rounded outward to values that occurred.

    `holding` is the estimate on all images, which resamples need not reach: the interval is widened to hold it.
    """
    if not estimates or not 0 < level < 1:
        raise DegenerateError(
            f"An interval of level {level} from {len(estimates)} resamples.",
            expected="a level between 0 and 1 and at least one resample",
        )
    low = np.quantile(estimates, (1 - level) / 2, method="lower")
    high = np.quantile(estimates, (1 + level) / 2, method="higher")
    return min(int(low), holding), max(int(high), holding)
