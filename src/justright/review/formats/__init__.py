"""The formats of other labeling tools: one file each, a pair of functions that write and read it."""

from __future__ import annotations

from pathlib import Path

from justright.review.formats.base import Format, read_json
from justright.utils.errors import DataError, MissingDataError
from justright.utils.registry import Registry

FORMATS: Registry[Format] = Registry("format")
for _name, _module, _about in (
    ("label-studio", "label_studio", "tasks with predictions for Label Studio, and a labeling config"),
    ("coco", "coco", "COCO JSON; one annotation an image, whose box is the whole image"),
    ("fiftyone", "fiftyone", "a folder that FiftyOne imports as FiftyOneImageClassificationDataset"),
    ("cvat", "cvat", "CVAT for images 1.1: XML with one tag an image"),
    ("csv", "csv_table", "a table, a row an image"),
    ("folders", "folders", "one folder per category, with links or copies"),
):
    FORMATS.add(_name, f"justright.review.formats.{_module}:FORMAT", _about)


def format_of(path: Path) -> str:
    """The name of the format of a file or folder; DataError if that is unclear."""
    if path.is_dir():
        inside = (name for name in FORMATS if FORMATS[name].file and (path / FORMATS[name].file).is_file())
        return next(inside, "folders")
    if not path.is_file():
        raise MissingDataError(f"no such file or folder: {path}")
    ending = path.suffix.lower()
    if ending == ".json":
        value = read_json(path)
        if isinstance(value, list):
            return "label-studio"
        for name, key in (("coco", "categories"), ("fiftyone", "labels")):
            if isinstance(value, dict) and key in value:
                return name
    elif ending in (".xml", ".zip"):
        return "cvat"
    elif ending == ".csv":
        return "csv"
    raise DataError(f"the format of {path} is unclear", expected=f"one of {', '.join(FORMATS)}", advice="add --from")
