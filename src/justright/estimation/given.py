"""What a counter is given, checked: images to count in, and labeled images that tell what a class looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.clustering.arrays import like, to_numpy
from justright.clustering.checks import check_features, check_labels, prepared
from justright.errors import DegenerateError
from justright.types import UNLABELED, Array


@dataclass(frozen=True, eq=False)
class Given:
    """Images to count categories in, and after them the images of the pool, if there is one.

    Attributes: x, features of both; labels, of both, -1 for an unlabeled image; n_counted, the images that are not of
    the pool.
    """

    x: Float[Any, "images dim"]
    labels: Int[Array, " images"]
    n_counted: int

    @staticmethod
    def of(features: Any, labels: Any, pool: tuple[Any, Any] | None, normalize: bool) -> Given:
        """Check what `CategoryCounter.fit` was given; scale every feature to length 1 if asked."""
        check_features(features)
        own = check_labels(features, labels)
        x = prepared(features, normalize)
        if pool is None:
            return Given(x, own, len(own))
        check_features(pool[0])
        of_pool = check_labels(*pool)
        if (own != UNLABELED).any():
            raise DegenerateError(
                f"{int((own != UNLABELED).sum())} labeled images, and a pool.",
                expected="a pool only where no image is labeled: classes of other kinds tell less than own ones",
                advice="leave the pool out",
            )
        is_labeled = of_pool != UNLABELED
        labeled = prepared(pool[0], normalize)[like(is_labeled, pool[0]), :]
        both = array_namespace(x).concat([x, labeled])
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
        """The features along their principal axes, n_axes of them at most."""
        x = to_numpy(self.x)
        z = principal_axes(x, min(n_axes, len(x) - 1))
        if not z.shape[1]:
            raise DegenerateError("All features are the same.", expected="images that differ")
        return z


def principal_axes(x: Float[Array, "images dim"], n_axes: int) -> Float[Array, "images axes"]:
    """The features about their mean, along the n_axes directions of largest variance."""
    centered = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    if centered.shape[0] < centered.shape[1]:
        # fewer images than dimensions: the small Gram matrix has the same eigenvalues
        value, vector = np.linalg.eigh(centered @ centered.T)
        axes = vector[:, ::-1][:, :n_axes] * np.sqrt(np.maximum(value[::-1][:n_axes], 0.0))
    else:
        _, vector = np.linalg.eigh(centered.T @ centered)
        axes = centered @ vector[:, ::-1][:, :n_axes]
    # an axis along which nothing varies says nothing and could not be scaled
    variance = axes.var(axis=0)
    return np.ascontiguousarray(axes[:, variance > 1e-12 * max(float(variance.max(initial=0.0)), 1e-300)])
