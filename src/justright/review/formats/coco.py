"""COCO JSON: categories, images and annotations.

COCO has boxes and no labels of whole images, so the box of each annotation is the whole image. Files are where
Datumaro and CVAT look for them: annotations/instances_default.json, and images/default/ where images are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from justright.data.decoding import upright_size
from justright.review.formats.base import Format, GivenLabel, LabelSheet, checked, read_json
from justright.review.image_names import ImageNames
from justright.utils.context import track
from justright.utils.errors import DataError
from justright.utils.files import write_json

FILE = "annotations/instances_default.json"
EXPECTED = "COCO JSON with images, annotations and categories"
Id = int | str


def write(sheet: LabelSheet, folder: Path) -> None:
    """Write the annotations; the confidence is the score of an annotation."""
    number = {name: place for place, name in enumerate(sheet.classes, start=1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for row in track(range(len(sheet)), len(sheet), "reading sizes"):
        name, label, confidence = sheet.names.names[row], sheet.labels[row], sheet.confidence[row]
        width, height = upright_size(sheet.images.encoded(row), name)
        images.append({"id": row + 1, "file_name": name, "width": width, "height": height})
        if label is not None:
            box = {"bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0, "segmentation": []}
            annotation = {"id": len(annotations) + 1, "image_id": row + 1, "category_id": number[label]} | box
            annotations.append(annotation if confidence is None else annotation | {"score": confidence})
    categories = [{"id": place, "name": name, "supercategory": ""} for name, place in number.items()]
    info = {"description": f"justright {sheet.title}; the box of an annotation is the whole image"}
    write_json(
        folder / FILE,
        {"info": info, "licenses": [], "categories": categories, "images": images, "annotations": annotations},
    )


class Category(BaseModel):
    """A category and its number."""

    id: Id
    name: str


class ImageEntry(BaseModel):
    """An image and its number."""

    id: Id
    file_name: str


class Annotation(BaseModel):
    """The category of an image."""

    image_id: Id
    category_id: Id


class Coco(BaseModel):
    """The parts of a file that labels are read from."""

    categories: list[Category]
    images: list[ImageEntry]
    annotations: list[Annotation]


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The category of each annotation; its box is not looked at."""
    found: Coco = checked(Coco, read_json(path), path, EXPECTED)
    names = _by_id(path, "categories", [(each.id, each.name) for each in found.categories])
    files = _by_id(path, "images", [(each.id, each.file_name) for each in found.images])
    for each in found.annotations:
        if each.image_id not in files or each.category_id not in names:
            problem = f"{path}: an annotation of image {each.image_id} and category {each.category_id}"
            raise DataError(problem, expected="numbers of images and categories of the same file")
        yield GivenLabel(files[each.image_id], names[each.category_id])


def _by_id(path: Path, part: str, pairs: list[tuple[Id, str]]) -> dict[Id, str]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DataError(f"{path}: two {part} have the same id", expected="each id once")
    return found


FORMAT = Format(
    write,
    read,
    file=FILE,
    images="images/default",
    usage="File names in {out}/annotations/instances_default.json are relative to {root}: give that as the folder of "
    "images.",
)
