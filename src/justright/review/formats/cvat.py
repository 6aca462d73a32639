"""CVAT for images 1.1: XML that gives each image a tag.

Only tags are read: boxes and other shapes are no labels of whole images.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat
from xml.sax.saxutils import XMLGenerator

from justright.data.decoding import upright_size
from justright.data.readers import open_zip
from justright.review.formats.base import Format, GivenLabel, LabelSheet, xml_text
from justright.review.image_names import ImageNames
from justright.utils.context import track
from justright.utils.errors import DataError
from justright.utils.files import write_json, write_text

EXPECTED = "annotations.xml of CVAT for images 1.1, or the zip that holds it"
CONFIDENCE = {"name": "confidence", "mutable": "False", "input_type": "text", "default_value": "", "values": ""}
PIECE = 1 << 20  # bytes that are parsed at once


def write(sheet: LabelSheet, folder: Path) -> None:
    """Write annotations.xml, and cvat-labels.json: the labels for the raw editor of a new task."""
    text = io.StringIO()
    xml = XMLGenerator(text, "utf-8", short_empty_elements=True)
    xml.startDocument()
    with _element(xml, "annotations"):
        _leaf(xml, "version", "1.1")
        with _element(xml, "meta"), _element(xml, "task"):
            for name, value in (("name", sheet.title), ("size", str(len(sheet))), ("mode", "annotation")):
                _leaf(xml, name, value)
            with _element(xml, "labels"):
                for label in sheet.classes:
                    _write_label(xml, label)
        for row in track(range(len(sheet)), len(sheet), "reading sizes"):
            _write_image(xml, sheet, row)
    xml.endDocument()
    write_text(folder / "annotations.xml", text.getvalue())
    attribute = CONFIDENCE | {"mutable": False, "values": [""]}
    labels = [{"name": label, "type": "tag", "attributes": [attribute]} for label in sheet.classes]
    write_json(folder / "cvat-labels.json", labels)


def _write_label(xml: XMLGenerator, label: str) -> None:
    with _element(xml, "label"):
        _leaf(xml, "name", label)
        _leaf(xml, "type", "tag")
        with _element(xml, "attributes"), _element(xml, "attribute"):
            for name, value in CONFIDENCE.items():
                _leaf(xml, name, value)


def _write_image(xml: XMLGenerator, sheet: LabelSheet, row: int) -> None:
    name, label, confidence = sheet.names.names[row], sheet.labels[row], sheet.confidence[row]
    width, height = upright_size(sheet.images.encoded(row), name)
    with _element(xml, "image", id=str(row), name=name, width=str(width), height=str(height)):
        if label is not None:
            with _element(xml, "tag", label=label, source="auto"):
                if confidence is not None:
                    _leaf(xml, "attribute", f"{confidence:.6g}", name="confidence")


@contextmanager
def _element(xml: XMLGenerator, name: str, /, **attributes: str) -> Iterator[None]:
    if name in ("meta", "label", "image"):
        xml.ignorableWhitespace("\n")  # lines of a length that people and diffs can handle
    xml.startElement(name, {key: xml_text(value) for key, value in attributes.items()})  # type: ignore[arg-type]
    yield
    xml.endElement(name)


def _leaf(xml: XMLGenerator, name: str, value: str, /, **attributes: str) -> None:
    with _element(xml, name, **attributes):
        xml.characters(xml_text(value))


class TagReader:
    """Collects the tags of images while a file is parsed."""

    def __init__(self, path: Path):
        self.path = path
        self.image: str | None = None
        self.found: list[GivenLabel] = []
        self.open: list[str] = []  # the elements around the present place
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.refuse  # so that no entity is ever expanded

    def refuse(self, *_: Any) -> None:
        """Refuse a document that declares types or entities."""
        raise DataError(f"{self.path} declares a document type", expected=EXPECTED)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """At the beginning of an element."""
        if not self.open and name != "annotations":
            raise DataError(f"{self.path} begins with <{name[:40]}>", expected=EXPECTED)
        wanted = "name" if name == "image" else "label"
        if name in ("image", "tag") and wanted not in attributes:
            line = self.parser.CurrentLineNumber
            raise DataError(f"{self.path}: <{name}> in line {line} has no {wanted}", expected=EXPECTED)
        if name == "image":
            self.image = attributes["name"]
        elif name == "tag" and self.image is not None and self.open[-1] == "image":
            self.found.append(GivenLabel(self.image, attributes["label"]))
        self.open.append(name)

    def end(self, name: str) -> None:
        """At the end of an element."""
        self.open.pop()
        if name == "image":
            self.image = None


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The tags of each image."""
    reader = TagReader(path)
    try:
        with _opened(path) as file:
            while piece := file.read(PIECE):
                reader.parser.Parse(piece, False)
            reader.parser.Parse(b"", True)
    except DataError:
        raise
    except Exception as error:  # damaged XML, and what a damaged zip raises, which is of many kinds
        raise DataError(f"{path} cannot be read: {error}", expected=EXPECTED) from error
    yield from reader.found


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The XML itself, or inside of the zip that CVAT downloads."""
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
