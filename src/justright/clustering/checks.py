"""What clustering and counting ask of their input and make of it, said once."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Int

from justright.clustering.arrays import to_numpy
from justright.geometry import unit_rows
from justright.utils.errors import DegenerateError
from justright.utils.types import UNLABELED, Array

Rows = Float[Any, "rows dim"]  # of numpy or torch, as are the others
RowScores = Float[Any, " rows"]
RowClusters = Int[Any, " rows"]
Centroids = Float[Any, "clusters dim"]


def check_features(features: Any) -> None:
    """Features are a table of finite numbers with at least one row and one column."""
    shape = tuple(features.shape)
    if len(shape) != 2 or 0 in shape:
        raise DegenerateError(f"Features of shape {shape}.", expected="images x dim, at least one of each")
    xp = array_namespace(features)
    if not xp.isdtype(features.dtype, "real floating"):
        raise DegenerateError(f"Features of type {features.dtype}.", expected="floating point numbers")
    # one sum is quicker than a mask of every number; it is not finite as soon as one of them is not ...
    if not bool(xp.isfinite(xp.sum(features, dtype=xp.float64))):
        is_bad = to_numpy(~xp.all(xp.isfinite(features), axis=1))
        # ... or when finite numbers overflow, which squared distances would do as well
        which = f"{is_bad.sum()} rows, e.g. {np.flatnonzero(is_bad)[:5].tolist()}," if is_bad.any() else "Numbers"
        raise DegenerateError(f"{which} of the features are not finite.", advice="look at how they were extracted")


def check_labels(features: Any, labels: Any) -> Int[Array, " images"]:
    """Labels as numpy integers, one per row of the features; None means that no image has one."""
    n_images = features.shape[0]
    if labels is None:
        return np.full(n_images, UNLABELED, dtype=np.int64)
    given = to_numpy(labels)
    if given.shape != (n_images,):
        raise DegenerateError(f"{given.shape} labels for {n_images} images.", expected="one label per image, aligned")
    if not np.issubdtype(given.dtype, np.integer):
        raise DegenerateError(f"Labels of type {given.dtype}.", expected="integers, -1 for an unlabeled image")
    if given.min() < UNLABELED:
        raise DegenerateError(f"A label of {given.min()}.", expected="classes from 0 on, and -1 for an unlabeled image")
    if given.max() > np.iinfo(np.int64).max:
        raise DegenerateError(f"A label of {given.max()}.", expected=f"labels of at most {np.iinfo(np.int64).max}")
    return given.astype(np.int64)


def check_n_clusters(n_clusters: int, n_classes: int, n_unlabeled: int) -> None:
    """Every labeled class needs a cluster of its own, every further cluster an unlabeled image."""
    if n_clusters < max(1, n_classes):
        raise DegenerateError(
            f"{n_clusters} clusters for {n_classes} labeled classes.",
            expected=f"at least {max(1, n_classes)} clusters, one per labeled class",
            advice="raise n_clusters, or drop labeled classes first",
        )
    if n_clusters - n_classes > n_unlabeled:
        raise DegenerateError(
            f"{n_clusters} clusters, {n_classes} of them labeled classes, but {n_unlabeled} unlabeled images.",
            expected=f"at most {n_classes + n_unlabeled} clusters, so that none is empty",
            advice="lower n_clusters",
        )


def prepared(features: Float[Any, "images dim"], normalize: bool) -> Float[Any, "images dim"]:
    """Features in at least single precision, scaled to length 1 if asked; a row of zeros has no direction and stays."""
    xp = array_namespace(features)
    x = features if features.dtype in (xp.float32, xp.float64) else xp.astype(features, xp.float32)
    if not normalize:
        return x
    return unit_rows(x)
