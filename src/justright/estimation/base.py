"""The base class of counters, and their validated input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from jaxtyping import Float, Int

from justright.geometry import at_least_single, unit_rows
from justright.utils.errors import DegenerateError
from justright.utils.estimator import Estimator
from justright.utils.settings import WHOLE, YES_OR_NO, check_ranges, setting
from justright.utils.types import UNLABELED, Array
from justright.utils.validation import check_features, check_labels, check_level

Fitted = TypeVar("Fitted", bound="CategoryCounter")
Curve = Float[Array, "points 2"]
PoolArrays = tuple[Any, Any]  # features (images x dim) and labels (images) of classes of other kinds than those counted


@dataclass(repr=False, eq=False, kw_only=True)
class CategoryCounter(Estimator, ABC):
    """Estimates K, the number of categories among labeled and unlabeled images.

    A counter is a dataclass whose fields are its parameters, and implements `_count` and `interval`. Attributes after
    `fit`: n_categories_, the estimate, and curve_, the values it was chosen from, one point (x, y) per row.
    """

    curve_axes: ClassVar[tuple[str, str]]  # names of x and y of the curve
    is_interval_quick: ClassVar[bool] = False  # whether an interval takes little time compared with the estimate

    normalize: bool = setting(True, "scale every feature to length 1 first", YES_OR_NO)
    seed: int = setting(0, "same seed, same result", WHOLE)

    def fit(self: Fitted, features: Any, labels: Any = None, pool: PoolArrays | None = None) -> Fitted:
        """Estimate K from features (images x dim) and labels (images), -1 for an unlabeled image.

        If no image is labeled, labels may be None, and a `pool` of other kinds shows how wide classes are. Its classes
        are not counted. Without a pool only some counters have an estimate, a rough one.
        """
        check_ranges(self, DegenerateError)
        self.n_categories_, self.curve_ = self._count(Given.of(features, labels, pool, self.normalize))
        return self

    @abstractmethod
    def _count(self, given: Given) -> tuple[int, Curve]:
        """The estimate and the curve."""

    @abstractmethod
    def interval(self, level: float = 0.9) -> tuple[int, int]:
        """An interval of K after `fit`; it always contains the estimate."""


def middle_interval(estimates: Sequence[int], level: float, holding: int) -> tuple[int, int]:
    """The quantiles (1 - level)/2 and (1 + level)/2 of whole numbers, rounded outward to values that occurred.

    `holding` is the estimate on all images, which the interval always contains.
    """
    check_level(level)
    if not estimates:
        raise DegenerateError("an interval from 0 resamples", expected="at least one")
    low = np.quantile(estimates, (1 - level) / 2, method="lower")
    high = np.quantile(estimates, (1 + level) / 2, method="higher")
    return min(int(low), holding), max(int(high), holding)


@dataclass(frozen=True, eq=False)
class Given:
    """Validated features and labels: the images to count categories in, then those of the pool."""

    x: Float[Any, "images dim"]  # features of both
    labels: Int[Array, " images"]  # of both, -1 for an unlabeled image
    n_counted: int  # number of images that are not of the pool

    @staticmethod
    def of(features: Any, labels: Any, pool: PoolArrays | None, normalize: bool) -> Given:
        """Validate the arguments of `CategoryCounter.fit`; scale features to length 1 if `normalize`."""
        x, own = _checked(features, labels, normalize)
        if pool is None:
            return Given(x, own, len(own))
        pool_x, of_pool = _checked(*pool, normalize)
        if n_labeled := int((own != UNLABELED).sum()):
            raise DegenerateError(
                f"{n_labeled} labeled images, and a pool",
                expected="a pool only if no image is labeled: own classes are more informative",
                advice="leave the pool out",
            )
        is_labeled = of_pool != UNLABELED
        both = np.concatenate([x, pool_x[is_labeled]])
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
        """Number of labeled classes, own ones or the pool's."""
        return len(np.unique(self.labels[self.is_labeled]))

    def require_classes(self, n_classes: int, advice: str) -> None:
        """Raise for fewer labeled classes, or one image per class: the width of a class is then unknown."""
        n_labeled = int(self.is_labeled.sum())
        if self.n_classes < n_classes or n_labeled == self.n_classes:
            needed = f"{n_classes} classes or more, and " if n_classes > 1 else ""
            raise DegenerateError(
                "No image is labeled." if not n_labeled else f"{self.n_classes} labeled classes, {n_labeled} images.",
                expected=f"{needed}two images of a class, which show how wide a class is",
                advice=advice,
            )

    def axes(self, n_axes: int) -> Float[Array, "images axes"]:
        """The centered features along at most n_axes directions of largest variance."""
        x, n_axes = self.x, min(n_axes, len(self.x) - 1)
        centered = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
        if centered.shape[0] < centered.shape[1]:
            # fewer images than dimensions: the small Gram matrix has the same eigenvalues
            value, vector = np.linalg.eigh(centered @ centered.T)
            z = vector[:, ::-1][:, :n_axes] * np.sqrt(np.maximum(value[::-1][:n_axes], 0.0))
        else:
            _, vector = np.linalg.eigh(centered.T @ centered)
            z = centered @ vector[:, ::-1][:, :n_axes]
        # an axis without variance has no information and could not be scaled
        variance = z.var(axis=0)
        varies = variance > 1e-12 * max(float(variance.max(initial=0.0)), 1e-300)
        if not varies.any():
            raise DegenerateError("All features are the same.", expected="images that differ")
        return np.ascontiguousarray(z[:, varies])


def _checked(features: Any, labels: Any, normalize: bool) -> tuple[Float[Any, "images dim"], Int[Array, " images"]]:
    """Valid features in at least single precision, at length 1 if `normalize`, and their labels."""
    x = check_features(features)
    x = unit_rows(x) if normalize else at_least_single(x)
    if labels is None:
        return x, np.full(len(x), UNLABELED)
    return x, check_labels(labels, len(x), allow_unlabeled=True)
