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
from justright.review.formats import Format, GivenLabel, LabelSheet, checked, read_json
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


class _Category(BaseModel):
    id: Id
    name: str


class _Image(BaseModel):
    id: Id
    file_name: str


class _Annotation(BaseModel):
    image_id: Id
    category_id: Id


class _Coco(BaseModel):
    categories: list[_Category]
    images: list[_Image]
    annotations: list[_Annotation]


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The category of each annotation; boxes are ignored."""
    coco: _Coco = checked(_Coco, read_json(path), path, EXPECTED)
    names = {each.id: each.name for each in coco.categories}
    files = {each.id: each.file_name for each in coco.images}
    if len(names) < len(coco.categories) or len(files) < len(coco.images):
        raise DataError(f"{path}: two categories or two images have the same id", expected="each id once")
    for each in coco.annotations:
        if each.image_id not in files or each.category_id not in names:
            problem = f"{path}: an annotation of image {each.image_id} and category {each.category_id}"
            raise DataError(problem, expected="ids of images and categories of the same file")
        yield files[each.image_id], names[each.category_id]


FORMAT = Format(
    write,
    read,
    file=FILE,
    images="images/default",
    usage="File names in {out}/annotations/instances_default.json are relative to {root}: give that as the folder of "
    "images.",
)
