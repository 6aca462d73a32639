"""Several labeled sets as one pool with one label space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import pyarrow as pa

from justright.data.columns import names_column
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError
from justright.utils.seeding import generator
from justright.utils.settings import at_least
from justright.utils.types import UNLABELED

OWN = "target"
"""The data set name of the target's own labeled part in the pool."""


def dataset_title(dataset: str) -> str:
    """The name of a data set for display: `labeled` for the target's own labeled part."""
    return "labeled" if dataset == OWN else dataset


@dataclass(frozen=True)
class Origin:
    """Where a class of the pool comes from: the data set, its label and its name there."""

    dataset: str
    label: int
    class_name: str

    @property
    def name(self) -> str:
        """The class name in the pool: `dataset/class`; the target's own classes keep their names."""
        return self.class_name if self.dataset == OWN else f"{self.dataset}/{self.class_name}"


@dataclass(frozen=True)
class Pool:
    """The merged images, labeled 0, 1, ... and named by their origins, and the origin of each label."""

    images: ImageSet
    origins: tuple[Origin, ...]


def merge_pool(sets: Sequence[ImageSet], max_per_class: int | None = None) -> Pool:
    """Merge labeled sets; labels follow the order of the sets, then of their own labels.

    `max_per_class` keeps that many random images of each class. The choice depends on the names of data set and class
    only, not on the rest of the pool.
    """
    _check(sets)
    parts: list[ImageSet] = []
    origins: list[Origin] = []
    for images in sets:
        for dataset in images.datasets:
            part = images.take(np.flatnonzero(np.array(images.table["dataset"].to_pylist()) == dataset))
            if max_per_class is not None:
                part = _capped(part, dataset, max_per_class)
            classes = [Origin(dataset, label, name) for label, name in part.classes.items()]
            index = np.searchsorted([origin.label for origin in classes], part.labels)
            labels = pa.array((len(origins) + index).astype(np.int32))
            names = names_column([origin.name for origin in classes], index)
            parts.append(part.replaced({"label": labels, "class_name": names}))
            origins += classes
    return Pool(ImageSet.concat(parts), tuple(origins))


def _check(sets: Sequence[ImageSet]) -> None:
    if not sets:
        raise DataError("the pool is empty", expected="at least one labeled set")
    if not any(len(images) for images in sets):
        raise DataError("no labeled images", expected="an image of a class, in a folder or as a row of a table")
    names = [name for images in sets for name in images.datasets]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise DataError(
            f"two sets of the pool are called {repeated[0]!r}",
            expected="different names, because classes are named dataset/class",
            advice="open one of them as open_images(source, name=...)",
        )
    for images in sets:
        unlabeled = np.flatnonzero(images.labels == UNLABELED)
        if len(unlabeled):
            raise DataError(
                f"{len(unlabeled):,} of {len(images):,} labeled images have no label, e.g. "
                f"{images.paths[unlabeled[0]]}",
                expected="a class for each",
                advice="put each image into the folder of its class, or name the classes in a column class_name of a "
                "table, or in a dict",
            )


def _capped(part: ImageSet, dataset: str, per_class: int) -> ImageSet:
    if not at_least(1, Integral).allows(per_class):
        raise DataError(f"a cap of {per_class} images", expected="a whole number of at least 1")
    chosen = []
    for label, name in part.classes.items():
        rows = np.flatnonzero(part.labels == label)
        if len(rows) > per_class:
            rows = generator(0, "pool", dataset, name).choice(rows, per_class, replace=False)
        chosen.append(rows)
    return part.take(np.sort(np.concatenate(chosen)))
