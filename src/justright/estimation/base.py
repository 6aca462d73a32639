"""What every way to count categories has in common: what it is given, checked, and what it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.clustering.arrays import like
from justright.geometry import unit_rows
from justright.utils.errors import DegenerateError
from justright.utils.estimator import Estimator
from justright.utils.settings import WHOLE, YES_OR_NO, refuse_out_of_range, setting
from justright.utils.types import UNLABELED, Array
from justright.utils.validation import check_features, check_labels, to_numpy

Fitted = TypeVar("Fitted", bound="CategoryCounter")
Curve = Float[Array, "points 2"]
PoolArrays = tuple[Any, Any]  # features (images x dim) and labels (images) of classes of other kinds than those counted


@dataclass(repr=False, eq=False, kw_only=True)
class CategoryCounter(Estimator, ABC):
    """Estimates K, the number of categories among labeled and unlabeled images.

    A counter is a dataclass whose fields are its parameters, and supplies `_count` and `interval`. After `fit` it has
    n_categories_, the estimate, and curve_, what was looked at on the way, one point (x, y) per line.
    """

    curve_axes: ClassVar[tuple[str, str]]  # what x and y of the curve are
    is_interval_quick: ClassVar[bool] = False  # whether an interval takes little time beside the estimate

    normalize: bool = setting(True, "scale every feature to length 1 first", YES_OR_NO)
    seed: int = setting(0, "same seed, same result", WHOLE)

    def fit(self: Fitted, features: Any, labels: Any, pool: PoolArrays | None = None) -> Fitted:
        """Estimate K from features (images x dim) and labels (images), -1 for an unlabeled image.

        Where no image is labeled, labels may be None, and a `pool` of other kinds tells what classes look like. Its
        classes are not counted. Without a pool too, only some counters know an answer, a rough one.
        """
        refuse_out_of_range(self, DegenerateError)
        self.n_categories_, self.curve_ = self._count(Given.of(features, labels, pool, self.normalize))
        return self

    @abstractmethod
    def _count(self, given: Given) -> tuple[int, Curve]:
        """The estimate and the curve."""

    @abstractmethod
    def interval(self, level: float = 0.9) -> tuple[int, int]:
        """The lowest and highest K that the estimate leaves open, after `fit`. It always holds the estimate."""


def checked_level(level: float) -> float:
    """The level of an interval; anything but a share between 0 and 1 is refused."""
    if not 0 < level < 1:
        raise DegenerateError(f"An interval of level {level}.", expected="a level between 0 and 1")
    return level


def middle_interval(estimates: Sequence[int], level: float, holding: int) -> tuple[int, int]:
    """The quantiles (1 - level)/2 and (1 + level)/2 of whole numbers, rounded outward to values that occurred.

    `holding` is the estimate on all images, which resamples need not reach: the interval is widened to hold it.
    """
    if not estimates or not 0 < level < 1:
        problem = f"An interval of level {level} from {len(estimates)} resamples."
        raise DegenerateError(problem, expected="a level between 0 and 1 and at least one resample")
    low = np.quantile(estimates, (1 - level) / 2, method="lower")
    high = np.quantile(estimates, (1 + level) / 2, method="higher")
    return min(int(low), holding), max(int(high), holding)


@dataclass(frozen=True, eq=False)
class Given:
    """Images to count categories in, and after them the images of the pool, if there is one."""

    x: Float[Any, "images dim"]  # features of both
    labels: Int[Array, " images"]  # of both, -1 for an unlabeled image
    n_counted: int  # images that are not of the pool

    @staticmethod
    def of(features: Any, labels: Any, pool: PoolArrays | None, normalize: bool) -> Given:
        """Check what `CategoryCounter.fit` was given; scale every feature to length 1 if asked."""
        x, own = _checked(features, labels, normalize)
        if pool is None:
            return Given(x, own, len(own))
        pool_x, of_pool = _checked(*pool, normalize)
        if n_labeled := int((own != UNLABELED).sum()):
            raise DegenerateError(
                f"{n_labeled} labeled images, and a pool.",
                expected="a pool only where no image is labeled: classes of other kinds tell less than own ones",
                advice="leave the pool out",
            )
        is_labeled = of_pool != UNLABELED
        both = array_namespace(x).concat([x, pool_x[like(is_labeled, pool_x), :]])
        return Given(both, np.concatenate([own, of_pool[is_labeled]]), len(own))

    @property
    def has_pool(self) -> bool:
        """Whether the labeled images are of other kinds than those counted."""
        return self.n_counted < len(self.labels)

    @property
    def is_labeled(self) -> Any:
        """Which images are labeled; with a pool, its images and no others."""
        return self.labels != UNLABELED

    @property
    def n_classes(self) -> int:
        """Labeled classes, own ones or the pool's."""
        return len(np.unique(self.labels[self.is_labeled]))

    def require_classes(self, n_classes: int, advice: str) -> None:
        """Refuse fewer labeled classes, or one image a class: nothing then tells how wide a class is."""
        n_labeled = int(self.is_labeled.sum())
        if self.n_classes < n_classes or n_labeled == self.n_classes:
            raise DegenerateError(
                "No image is labeled." if not n_labeled else f"{self.n_classes} labeled classes, {n_labeled} images.",
                expected=f"{n_classes} classes or more, and more images than classes, to learn how wide a class is",
                advice=advice,
            )

    def axes(self, n_axes: int) -> Float[Array, "images axes"]:
        """The features about their mean, along the directions of largest variance, n_axes of them at most."""
        x = to_numpy(self.x)
        n_axes = min(n_axes, len(x) - 1)
        centered = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
        if centered.shape[0] < centered.shape[1]:
            # fewer images than dimensions: the small Gram matrix has the same eigenvalues
            value, vector = np.linalg.eigh(centered @ centered.T)
            z = vector[:, ::-1][:, :n_axes] * np.sqrt(np.maximum(value[::-1][:n_axes], 0.0))
        else:
            _, vector = np.linalg.eigh(centered.T @ centered)
            z = centered @ vector[:, ::-1][:, :n_axes]
        # an axis along which nothing varies says nothing and could not be scaled
        variance = z.var(axis=0)
        varies = variance > 1e-12 * max(float(variance.max(initial=0.0)), 1e-300)
        if not varies.any():
            raise DegenerateError("All features are the same.", expected="images that differ")
        return np.ascontiguousarray(z[:, varies])


def _checked(features: Any, labels: Any, normalize: bool) -> tuple[Float[Any, "images dim"], Int[Array, " images"]]:
    """Valid features in at least single precision, at length 1 if `normalize`, and their labels."""
    x = check_features(features)
    xp, n_images = array_namespace(x), x.shape[0]
    if normalize:
        x = unit_rows(x)
    elif x.dtype not in (xp.float32, xp.float64):
        x = xp.astype(x, xp.float32)
    if labels is None:
        return x, np.full(n_images, UNLABELED)
    return x, check_labels(labels, n_images, allow_unlabeled=True)
