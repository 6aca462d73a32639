"""Rows of features: chunks that fit the cache, norms, unit length, sums and centroids of classes, quantiles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from justright.utils.errors import DataError
from justright.utils.types import Array, Features, Labels, Mask

CHUNK_ROWS = 8192
"""Rows handled at once, so that memory does not grow with the number of images."""
N_QUANTILES = 1001


def row_chunks(features: Features, chunk_rows: int = CHUNK_ROWS) -> Iterator[Float[Array, "chunk dim"]]:
    """The rows of features in order, at most `chunk_rows` at a time, in single or double precision.

    Half precision, as feature stores keep it, is widened one chunk at a time.
    """
    for start in range(0, len(features), chunk_rows):
        yield at_least_single(features[start : start + chunk_rows])


def evenly_spaced(n_rows: int, most: int) -> Int[Array, " places"]:
    """At most `most` row numbers, evenly spaced from the first row to the last."""
    return np.unique(np.linspace(0, n_rows - 1, most if n_rows else 0).astype(np.int64))


def row_norms(features: Features) -> Float[Array, " images"]:
    """The Euclidean norm of each row."""
    norms = [np.sqrt(np.einsum("id,id->i", rows, rows)) for rows in row_chunks(features)]
    return np.concatenate(norms) if norms else np.zeros(0)


def at_least_single(features: Features) -> Features:
    """Half precision as single; single and double precision as they are."""
    return features if features.dtype == np.float64 else features.astype(np.float32, copy=False)


def unit_rows(features: Features) -> Features:
    """Scale each row to length 1, in at least single precision; a row of zeros stays."""
    wide = at_least_single(features)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(length > 0, length, 1)


def quantiles(values: Float[Array, " rows"]) -> Float[Array, " quantiles"]:
    """The distribution of a value over rows, in `N_QUANTILES` numbers."""
    return np.quantile(values, np.linspace(0, 1, N_QUANTILES)).astype(np.float32)


def below_quantile(values: Float[Array, " rows"], reference: Float[Array, " quantiles"] | None, level: float) -> Mask:
    """Whether a value is lower than all but a share `level` of those in `reference`; never if `level` is 0."""
    if reference is None or level == 0:
        return np.zeros(len(values), dtype=bool)
    return values < np.quantile(reference, level)


class ClassSums:
    """Sum and count of the features of each class, over any number of batches, and from them its centroid. Eq. 7, 10.

    h_c = 1 / N_c * sum_{y_i = c} f(x_i)          of the N_c images of class c
    h^u_c = 1 / N^u_c * sum_{yhat_j = c} f(x_j)   yhat_j the cluster of target image j

    Memory is classes x dim, however many images are added. Sums are in double precision: how images are divided into
    batches changes them by 1e-15. Classes need not be known in advance.

    Attributes: classes (ascending), sums, counts, aligned.
    """

    def __init__(self) -> None:
        self.classes: Int[Array, " classes"] = np.zeros(0, dtype=np.int64)
        self.counts: Int[Array, " classes"] = np.zeros(0, dtype=np.int64)
        self.sums: Float[Array, "classes dim"] = np.zeros((0, 0))

    def update(self, features: Features, labels: Labels) -> ClassSums:
        """Add a batch of images."""
        batch = ClassSums()
        batch.classes, batch.counts = np.unique(labels, return_counts=True)
        batch.sums = np.zeros((len(batch.classes), features.shape[1]))
        by_class = np.split(np.argsort(labels, kind="stable"), np.cumsum(batch.counts)[:-1])
        # Class by class, a few rows at a time in double precision: fifty times faster than np.add.at.
        for k, members in enumerate(by_class):
            for start in range(0, len(members), CHUNK_ROWS):
                rows = features[members[start : start + CHUNK_ROWS]]
                batch.sums[k] += rows.astype(np.float64).sum(axis=0)
        return self.merge(batch)

    def merge(self, other: ClassSums) -> ClassSums:
        """Add the images of another accumulator."""
        parts = [part for part in (self, other) if len(part.classes)]
        if not parts:
            return self
        dim = parts[0].sums.shape[1]
        if parts[-1].sums.shape[1] != dim:
            raise DataError(
                f"features of {other.sums.shape[1]} dimensions after features of {dim}",
                expected="one dimension throughout",
                advice="extract all features with the same backbone",
            )
        classes = np.union1d(self.classes, other.classes)
        sums, counts = np.zeros((len(classes), dim)), np.zeros(len(classes), dtype=np.int64)
        for part in parts:
            place = np.searchsorted(classes, part.classes)
            sums[place] += part.sums
            counts[place] += part.counts
        self.classes, self.sums, self.counts = classes, sums, counts
        return self

    def centroids(self) -> Float[Array, "classes dim"]:
        """The mean feature of each class or cluster, aligned with `classes`."""
        return self.sums / self.counts[:, None]
