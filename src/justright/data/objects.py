"""Data sets in memory as an ImageSet: torchvision-style ones, Hugging Face ones, lists of images.

Neither library is imported; an object is recognized by its attributes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from justright.data.columns import LABELS, MAX_LABEL
from justright.data.decoding import decode, to_rgb
from justright.data.image_set import ImageSet
from justright.data.manifest import arrow_table, images_of_table
from justright.data.readers import FolderReader, Reader, read_file
from justright.utils.errors import BadImageError, DataError
from justright.utils.types import UNLABELED

EXPECTED = (
    "a folder, zip, CSV or Parquet file; a list of paths or images; a dict of class and paths; a DataFrame or Arrow "
    "table with the columns path and label; a torchvision-style data set; a Hugging Face Dataset with images"
)
LABEL_COLUMNS = ("label", "labels", "class_name", "class", "category")
LABEL_ATTRIBUTES = ("targets", "labels", "_labels")  # of a torchvision data set


class ObjectReader(Reader):
    """Images of an object in memory, by row: `rows[i]`, or `rows[i][column]`. Nothing is decoded before it is read."""

    def __init__(self, name: str, rows: Any, column: str | int | None):
        self.rows, self.column = rows, column
        self.source = f"object:{name}-{secrets.token_hex(4)}"

    def image(self, path: str) -> Image.Image:
        stored = self._stored(path)
        return decode(stored, path) if isinstance(stored, bytes) else stored

    def encoded(self, path: str) -> bytes:
        stored = self._stored(path)
        return stored if isinstance(stored, bytes) else super().encoded(path)

    def content(self, path: str) -> bytes:
        stored = self._stored(path)
        if isinstance(stored, bytes):
            return stored
        return repr(stored.size).encode() + stored.tobytes()  # a PNG of it may differ between library versions

    def version(self, path: str) -> Any:
        return "in memory"  # such images do not change

    def _stored(self, path: str) -> bytes | Image.Image:
        """The encoded file of a row, or its decoded image."""
        try:
            item = self.rows[int(path)]
            item = item if self.column is None else item[self.column]
            if isinstance(item, dict) and {"bytes", "path"} & set(item):  # a Hugging Face image that is not decoded
                item = item["path"] if item.get("bytes") is None else item["bytes"]
            if isinstance(item, str | os.PathLike):
                return read_file(Path(item), path)
            if isinstance(item, bytes):
                return item
            if isinstance(item, Image.Image):
                return to_rgb(item)
            if isinstance(item, np.ndarray) and item.dtype == np.uint8:
                return to_rgb(Image.fromarray(item))
        except BadImageError:
            raise
        except Exception as error:  # the object's own code may raise anything
            raise BadImageError(f"{path}: cannot be read ({type(error).__name__}: {error})") from error
        raise DataError(
            f"image {path} is a {type(item).__name__}",
            expected="a PIL image, a path, encoded bytes or a uint8 array",
            advice="open the data set without a transform",
        )


def from_dataset(data: Any, name: str | None = None) -> ImageSet:
    """The images of a data set object. Labels are read now, images when they are needed, files directly from disk."""
    if hasattr(data, "dataset") and hasattr(data, "indices"):  # torch.utils.data.Subset
        return from_dataset(data.dataset, name).take(data.indices)
    name = name or _name_of(data)
    if hasattr(data, "features") and hasattr(data, "column_names"):
        return _from_hugging_face(data, name)
    is_sequence = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    if not (is_sequence or hasattr(data, "samples")) or isinstance(data, str | bytes | dict):
        raise DataError(f"cannot open a {type(data).__name__} as images", expected=EXPECTED)
    classes = getattr(data, "classes", None)
    if (samples := getattr(data, "samples", getattr(data, "imgs", None))) is not None:  # torchvision's ImageFolder
        paths, labels = [path for path, _ in samples], [label for _, label in samples]
        root = os.path.abspath(getattr(data, "root", None) or os.path.commonpath(paths or ["."]))
        inside = [os.path.relpath(path, root) for path in paths]
        return _labeled(FolderReader(Path(root)), name, inside, labels, classes)
    rows = range(len(data))
    for attribute in LABEL_ATTRIBUTES:
        if (targets := getattr(data, attribute, None)) is not None:
            return _labeled(ObjectReader(name, data, 0), name, rows, targets, classes)
    first = data[0] if len(data) else None
    if isinstance(first, Image.Image | np.ndarray | bytes):
        return _labeled(ObjectReader(name, data, None), name, rows, None, None)
    if not (isinstance(first, tuple | list) and len(first) == 2):
        raise DataError(f"{name} has items of the type {type(first).__name__} and no targets", expected=EXPECTED)
    if isinstance(first[0], str | os.PathLike):
        pairs = [data[row] for row in rows]
        paths, labels = [os.fspath(path) for path, _ in pairs], [label for _, label in pairs]
        return _labeled(FolderReader(Path.cwd()), name, paths, labels, classes)
    return _labeled(ObjectReader(name, data, 0), name, rows, [data[row][1] for row in rows], classes)


def _name_of(data: Any) -> str:
    """The name that a data set object has, such as cifar10, else that of its class."""
    if name := getattr(getattr(data, "info", None), "dataset_name", None):
        return str(name)
    return "images" if isinstance(data, list) else type(data).__name__.lower()


def _from_hugging_face(data: Any, name: str) -> ImageSet:
    if not hasattr(data, "__len__"):
        raise DataError(
            f"{name} is a streamed data set without a length",
            expected="a datasets.Dataset",
            advice="load it with streaming=False",
        )
    if hasattr(data, "with_format"):
        data = data.with_format(None)  # as stored, whatever format or transform was set
    kinds = {column: type(feature).__name__ for column, feature in data.features.items()}

    def first_column(kind: str, *usual: str) -> str | None:
        """The first column of this kind, else the first of the usual names."""
        candidates = [column for column in kinds if kinds[column] == kind]
        candidates += [column for column in usual if column in kinds]
        return candidates[0] if candidates else None

    image, label = first_column("Image", "image", "img"), first_column("ClassLabel", *LABEL_COLUMNS)
    if image is None:
        raise DataError(
            f"{name} has the columns {', '.join(kinds)}",
            expected="a column of images",
            advice="data.cast_column(NAME, datasets.Image())",
        )
    labels = None if label is None else list(data[label])
    names = getattr(data.features.get(label), "names", None)
    if hasattr(data, "cast_column") and kinds[image] == "Image":
        data = data.cast_column(image, type(data.features[image])(decode=False))  # the bytes of the files
    return _labeled(ObjectReader(name, data, image), name, range(len(data)), labels, names)


def _labeled(reader: Reader, name: str, paths: Iterable[Any], labels: Any, names: Sequence[str] | None) -> ImageSet:
    """The images with labels, which are numbers or text; `names` has the class name of each number."""
    columns: list[tuple[str, list[Any]]] = [("path", list(map(str, paths)))]
    if labels is not None:
        labels = list(labels)
        if not all(label is None or isinstance(label, str) for label in labels):
            labels = [whole_number(label, name, row) for row, label in enumerate(labels)]
            if names and max(labels) >= len(names):
                raise DataError(f"label {max(labels)}, but {len(names)} class names", expected="a name for each label")
            if names:
                columns.append(("class_name", [None if label < 0 else str(names[label]) for label in labels]))
        columns.append(("label", labels))
    return images_of_table(arrow_table(columns, name), reader, name, name)


def whole_number(label: Any, name: str, row: int) -> int:
    """A label as a number, -1 where it is unknown."""
    value = label.item() if hasattr(label, "item") and np.size(np.asarray(label)) == 1 else label
    if value is None:
        return UNLABELED
    if not (isinstance(value, int | float) and value == value // 1 and UNLABELED <= value <= MAX_LABEL):
        raise DataError(f"{name}: image {row} has the label {label!r}", expected=LABELS)
    return int(value)
