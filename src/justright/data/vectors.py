"""Images with known features: an ImageSet whose rows are vectors, with or without pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from PIL import Image

from justright.data.image_set import ImageSet
from justright.data.manifest import arrow_table, images_of_table
from justright.data.objects import whole_number
from justright.data.readers import Reader
from justright.utils.errors import BadImageError, BadKind, DataError
from justright.utils.types import UNLABELED, Array
from justright.utils.validation import check_features

PICTURE_SIDE = 256  # pixels of the longer side of a picture that is kept with a run
Vectors = Float[Array, "images dim"]


class VectorReader(Reader):
    """Rows of an array by path. Equal vectors have equal content ids; pictures are for people only."""

    def __init__(self, vectors: Vectors, paths: Sequence[str], pictures: ImageSet | None = None):
        self.vectors, self.pictures = vectors, pictures
        self.row = {path: row for row, path in enumerate(paths)}
        self.source = f"vectors:{id(self):x}"

    def vector(self, path: str) -> Float[Array, " dim"]:
        """The vector of an image."""
        return self.vectors[self.row[path]]

    def content(self, path: str) -> bytes:
        return np.ascontiguousarray(self.vector(path), "<f4").tobytes()

    def image(self, path: str) -> Image.Image:
        if path not in self.row:
            raise BadImageError(f"{path}: no such row", BadKind.MISSING)
        if self.pictures is not None:
            picture = self.pictures.image(self.row[path])
            picture.thumbnail((PICTURE_SIDE, PICTURE_SIDE))
            return picture
        return _drawn_vector(self.vector(path))


def _drawn_vector(vector: Float[Array, " dim"]) -> Image.Image:
    """The numbers of a vector as gray squares, row by row, for images without a picture."""
    low, high = float(vector.min()), float(vector.max())
    gray = np.round(255 * (vector - low) / ((high - low) or 1.0)).astype(np.uint8)
    side = math.ceil(math.sqrt(len(gray)))
    square = np.zeros(side * side, np.uint8)
    square[: len(gray)] = gray
    small = Image.fromarray(square.reshape(side, side))
    return small.resize((PICTURE_SIDE // 4, PICTURE_SIDE // 4), Image.Resampling.NEAREST).convert("RGB")


def vector_set(vectors: Any, labels: Any = None, name: str = "vectors") -> ImageSet:
    """Vectors as an ImageSet, named by their row; `labels` are names or whole numbers, None for unlabeled ones."""
    rows = checked_vectors(vectors, name)
    paths = [str(row) for row in range(len(rows))]
    names = [None] * len(rows) if labels is None else class_names(labels, name)
    if len(names) != len(rows):
        raise DataError(f"{len(names):,} labels for {len(rows):,} rows of {name}", expected="one each")
    return images_of_table(
        arrow_table([("path", paths), ("class_name", names)], name), VectorReader(rows, paths), name, name
    )


def class_names(labels: Any, name: str) -> list[str | None]:
    """The name of the class of each row: text as it is, whole numbers as text, None where the label is unknown."""
    names: list[str | None] = []
    for row, label in enumerate(labels.tolist() if hasattr(labels, "tolist") else labels):
        if isinstance(label, str):
            names.append(str(label) or None)
        else:
            number = whole_number(label, name, row)
            names.append(None if number == UNLABELED else str(number))
    return names


def with_vectors(images: ImageSet, vectors: Any) -> ImageSet:
    """The same images with these vectors as features, one row each; the images serve as pictures only."""
    rows = checked_vectors(vectors, ", ".join(images.datasets))
    if len(rows) != len(images):
        raise DataError(f"{len(rows):,} rows of features for {len(images):,} images", expected="one each, in order")
    paths = images.paths
    if len(set(paths)) < len(paths):
        paths = [f"{row}:{path}" for row, path in enumerate(paths)]
    reader, table = VectorReader(rows, paths, images), images.table
    return ImageSet.of(
        reader, dataset=images.datasets[0], path=paths, label=table["label"], class_name=table["class_name"]
    )


def checked_vectors(vectors: Any, name: str) -> Vectors:
    """A two-dimensional array of finite float32 numbers, from an array, a tensor or a nested list."""
    if isinstance(vectors, str | os.PathLike):
        raise DataError(
            f"{name} is the path {os.fspath(vectors)}",
            expected="an array of numbers, images x dimensions",
            advice="numpy.load(path)",
        )
    rows = np.ascontiguousarray(check_features(vectors, name), dtype=np.float32)
    return check_features(rows, name)  # large numbers may be infinite in float32


def has_vectors(images: ImageSet) -> bool:
    """Whether the features of all images are known."""
    sources = images.table["source"].unique().to_pylist()
    return bool(sources) and all(isinstance(images.readers[source], VectorReader) for source in sources)


def vectors_of(images: ImageSet) -> Vectors:
    """The vectors of all images, in order."""
    sources = images.table["source"].cast("string").to_pylist()
    readers: dict[str, Any] = dict(images.readers)
    return np.stack([readers[source].vector(path) for source, path in zip(sources, images.paths, strict=True)])
