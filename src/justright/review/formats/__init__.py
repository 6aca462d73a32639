"""The formats of other labeling tools: one file each, a pair of functions that write and read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from justright.data import ImageSet
from justright.review.actions import first_problem
from justright.review.image_names import ImageNames
from justright.utils.errors import DataError, MissingDataError
from justright.utils.files import parsed_json, validator_of
from justright.utils.registry import Registry

GivenLabel = tuple[str, str]  # the name of an image in a file, and its label there
NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, eq=False)
class LabelSheet:
    """The labels of a run, for a tool. Lists have one entry per image."""

    title: str  # the name of the run
    images: ImageSet
    names: ImageNames
    root: Path  # the folder in which the tool finds the images by their names
    labels: list[str | None]  # None: no category
    confidence: list[float | None]  # None where a person chose the label
    classes: list[str]  # labels that people may choose
    table: pa.Table  # what `review --export` writes as a table
    is_copy: bool = False  # whether images are copied instead of linked

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Format:
    """How labels are written for a tool, and read from the file that it saved.

    `write` fills a folder, or a file with `is_file`. `read` yields the labels of a file, or of a folder without `file`;
    images without a label are left out.
    """

    write: Callable[[LabelSheet, Path], None]
    read: Callable[[Path, ImageNames], Iterator[GivenLabel]]
    usage: str  # how the tool gets labels and images; with {out}, {root} and {above}, the folder above the root
    file: str = ""  # the file of labels in an exported folder; empty: there is none
    images: str = "images"  # the folder for images where they have to be written; empty: none
    has_images: bool = False  # whether images are always written or linked
    is_file: bool = False  # whether one file is written instead of a folder


def read_json(path: Path) -> Any:
    """The value in a JSON file; DataError if it cannot be read."""
    try:
        return parsed_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}", expected="JSON") from error


def checked(kind: Any, value: Any, path: Path, expected: str) -> Any:
    """Validate a JSON value as a type; DataError with the first wrong field."""
    try:
        return validator_of(kind)(value)
    except ValidationError as error:
        raise DataError(f"{path} cannot be read: {first_problem(error.errors())}", expected=expected) from error
    except RecursionError as error:
        raise DataError(f"{path} cannot be read: nested too deeply", expected=expected) from error


def xml_text(text: str) -> str:
    """The text, if XML can hold it; raises DataError otherwise."""
    if NOT_IN_XML.search(text):
        raise DataError(f"{text!r} has a character that XML cannot hold", advice="rename it, or use another format")
    return text


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
