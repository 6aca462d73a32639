"""What every way to count categories has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Float

from justright.progress import Track, silent
from justright.types import Array

PoolArrays = tuple[Any, Any]
"""Features (images x dim) and labels (images) of classes of other kinds than those to be counted."""


class CategoryCounter(ABC):
    """Estimates K, the number of categories among labeled and unlabeled images.

    Attributes: n_categories_, the estimate; curve_, what was looked at on the way, one point (x, y) per line, to be
    drawn with `curve_axes` as the names of its axes.
    """

    curve_axes: ClassVar[tuple[str, str]]
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
