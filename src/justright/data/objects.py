"""A Hugging Face or torchvision data set as an ImageSet. Neither library is needed: only their shape is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from justright.data.checked_columns import LABELS, MAX_LABEL
from justright.data.decoding import decode, to_rgb
from justright.data.image_set import ImageSet
from justright.data.readers import FolderReader, Reader, read_file
from justright.utils.errors import BadImageError, DataError
from justright.utils.hashing import hash_bytes
from justright.utils.types import UNLABELED

EXPECTED = (
    "a Hugging Face data set (with features and an image column), or a torchvision one (with samples, or with "
    "targets and items of image and label)"
)


class ObjectReader(Reader):
    """A data set in memory: each of its rows holds a picture, in a column by name or number, read only when needed."""

    def __init__(self, name: str, rows: Any, column: str | int):
        self.rows, self.column = rows, column
        self.source = f"object:{name}-{id(self):x}"

    def image(self, path: str) -> Image.Image:
        """The picture at a position, whatever form the object keeps it in."""
        try:
            picture = self.rows[int(path)][self.column]
            # with decoding off, Hugging Face gives the file's bytes, or where they are
            if isinstance(picture, dict) and {"bytes", "path"} & set(picture):
                picture = (
                    picture["bytes"] if picture.get("bytes") is not None else read_file(Path(picture["path"]), path)
                )
            if isinstance(picture, Image.Image):
                return to_rgb(picture)
            if isinstance(picture, bytes):
                return decode(picture, path)
            if isinstance(picture, np.ndarray) and picture.dtype == np.uint8:
                return to_rgb(Image.fromarray(picture))
        except BadImageError:
            raise
        except Exception as error:  # somebody else's code, and images that it opened but did not read
            raise BadImageError(f"{path}: cannot be read ({type(error).__name__}: {error})") from error
        raise DataError(
            f"image {path} is a {type(picture).__name__}",
            expected="a PIL image, encoded bytes or a uint8 array",
            advice="give the data set without a transform",
        )

    def content_id(self, path: str) -> str:
        """Hash of the pixels: a PNG of them may differ between versions of a library."""
        image = self.image(path)
        return hash_bytes(repr(image.size).encode() + image.tobytes())


def from_dataset(data: Any, name: str) -> ImageSet:
    """The images of a data set object. Labels are read at once, images when asked for, files straight from disk."""
    if hasattr(data, "features") and hasattr(data, "column_names"):
        return _from_hugging_face(data, name)
    if hasattr(data, "samples") or hasattr(data, "imgs"):
        return _from_image_folder(data, name)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return _from_items(data, name)
    raise DataError(f"{name} is a {type(data).__name__}", expected=EXPECTED)


def _from_hugging_face(data: Any, name: str) -> ImageSet:
    kinds = {column: type(feature).__name__ for column, feature in data.features.items()}

    def first_column(wanted: str, *usual: str) -> str | None:
        of_kind = [column for column, kind in kinds.items() if kind == wanted]
        return next(iter(of_kind + [column for column in usual if column in kinds]), None)

    image, label = first_column("Image", "image", "img"), first_column("ClassLabel", "label", "labels")
    if image is None:
        raise DataError(f"{name} has the columns {', '.join(kinds)}", expected="one that holds images")
    pictures = ObjectReader(name, data, image)
    labels = None if label is None else list(data[label])
    return _labeled(pictures, name, range(len(data)), labels, getattr(data.features.get(label), "names", None))


def _from_image_folder(data: Any, name: str) -> ImageSet:
    samples: Sequence[tuple[str, int]] = data.samples if hasattr(data, "samples") else data.imgs
    root = os.path.abspath(getattr(data, "root", None) or os.path.commonpath([path for path, _ in samples] or ["."]))
    paths, labels = [os.path.relpath(path, root) for path, _ in samples], [label for _, label in samples]
    return _labeled(FolderReader(Path(root)), name, paths, labels, getattr(data, "classes", None))


def _from_items(data: Any, name: str) -> ImageSet:
    found = [getattr(data, attribute, None) for attribute in ("targets", "labels", "_labels")]
    labels = next((labels for labels in found if labels is not None), None)
    if labels is None:
        first = data[0] if len(data) else None
        if not (isinstance(first, tuple) and len(first) == 2):
            raise DataError(f"{name} gives {type(first).__name__} items and has no targets", expected=EXPECTED)
        labels = [label for _, label in (data[i] for i in range(len(data)))]
    return _labeled(ObjectReader(name, data, 0), name, range(len(data)), labels, getattr(data, "classes", None))


def _labeled(reader: Reader, name: str, paths: Iterable[Any], labels: Any, names: Sequence[str] | None) -> ImageSet:
    columns: dict[str, Any] = {"path": [*map(str, paths)]}
    if labels is not None:
        numbers = [_whole(label, name, row) for row, label in enumerate(labels)]
        if names and max(numbers, default=0) >= len(names):
            raise DataError(f"label {max(numbers)}, but {len(names)} class names", expected="a name for every label")
        named = [None if label < 0 else str(names[label]) if names else str(label) for label in numbers]
        columns |= {"label": numbers, "class_name": named}
    return ImageSet.of(reader, dataset=name, **columns)


def _whole(label: Any, name: str, row: int) -> int:
    value = label.item() if hasattr(label, "item") and np.size(label) == 1 else label
    if value is None:
        return UNLABELED
    if not (isinstance(value, int | float) and value == value // 1 and UNLABELED <= value <= MAX_LABEL):
        raise DataError(f"{name}: image {row} has the label {label!r}", expected=LABELS)
    return int(value)
