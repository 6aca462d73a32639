"""CVAT for images 1.1: XML with one tag for each image. Boxes and other shapes are ignored."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from justright.data.decoding import upright_size
from justright.data.readers import open_zip
from justright.review.formats import Format, GivenLabel, LabelSheet, xml_text
from justright.review.image_names import ImageNames
from justright.utils.context import track
from justright.utils.errors import DataError
from justright.utils.files import write_json, write_text

EXPECTED = "annotations.xml of CVAT for images 1.1, or the zip that holds it"
CONFIDENCE = {"name": "confidence", "mutable": "False", "input_type": "text", "default_value": "", "values": ""}


def write(sheet: LabelSheet, folder: Path) -> None:
    """Write annotations.xml, and cvat-labels.json: the labels for the raw editor of a new task."""
    root = ET.Element("annotations")
    _add(root, "version", "1.1")
    task = _add(_add(root, "meta"), "task")
    _add(task, "name", sheet.title)
    _add(task, "size", str(len(sheet)))
    _add(task, "mode", "annotation")
    labels = _add(task, "labels")
    for name in sheet.classes:
        label = _add(labels, "label")
        _add(label, "name", name)
        _add(label, "type", "tag")
        attribute = _add(_add(label, "attributes"), "attribute")
        for key, value in CONFIDENCE.items():
            _add(attribute, key, value)
    for row in track(range(len(sheet)), len(sheet), "reading sizes"):
        file_name, category, confidence = sheet.names.names[row], sheet.labels[row], sheet.confidence[row]
        width, height = upright_size(sheet.images.encoded(row), file_name)
        image = _add(root, "image", id=str(row), name=file_name, width=str(width), height=str(height))
        if category is not None:
            tag = _add(image, "tag", label=category, source="auto")
            if confidence is not None:
                _add(tag, "attribute", f"{confidence:.6g}", name="confidence")
    ET.indent(root)
    write_text(folder / "annotations.xml", ET.tostring(root, "utf-8", xml_declaration=True).decode())
    json_attribute = CONFIDENCE | {"mutable": False, "values": [""]}
    json_labels = [{"name": name, "type": "tag", "attributes": [json_attribute]} for name in sheet.classes]
    write_json(folder / "cvat-labels.json", json_labels)


def _add(parent: ET.Element, tag: str, text: str | None = None, /, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, {key: xml_text(value) for key, value in attributes.items()})
    element.text = None if text is None else xml_text(text)
    return element


class _Builder(ET.TreeBuilder):
    """Rejects a document type, so that no entity is ever expanded."""

    def doctype(self, *_: object) -> None:
        raise ValueError("it declares a document type")


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The tags of each image."""
    try:
        with _opened(path) as file:
            root = ET.parse(file, ET.XMLParser(target=_Builder())).getroot()  # noqa: S314 no entities
    except DataError:
        raise
    except Exception as error:  # damaged XML, and what a damaged zip raises, which is of many kinds
        raise DataError(f"{path} cannot be read: {error}", expected=EXPECTED) from error
    if root.tag != "annotations":
        raise DataError(f"{path} begins with <{root.tag[:40]}>", expected=EXPECTED)
    for image in root.iter("image"):
        for tag in image.iterfind("tag"):
            yield _attribute(path, image, "name"), _attribute(path, tag, "label")


def _attribute(path: Path, element: ET.Element, name: str) -> str:
    if name not in element.attrib:
        raise DataError(f"{path}: <{element.tag}> has no {name}", expected=EXPECTED)
    return element.attrib[name]


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open the XML file, or the one in the zip that CVAT downloads."""
    if path.suffix.lower() != ".zip":
        with path.open("rb") as file:
            yield file
        return
    with open_zip(path) as archive:
        inside = [name for name in archive.namelist() if name.rpartition("/")[2] == "annotations.xml"]
        if len(inside) != 1:
            raise DataError(f"{path} holds {len(inside)} files named annotations.xml", expected=EXPECTED)
        with archive.open(inside[0]) as file:
            yield file


FORMAT = Format(
    write,
    read,
    file="annotations.xml",
    usage="In CVAT, create a task with the images of {root} (a connected share keeps their folders) and the labels of "
    "{out}/cvat-labels.json in the raw editor, then upload {out}/annotations.xml as CVAT 1.1.",
)
