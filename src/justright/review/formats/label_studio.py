"""Label Studio: tasks as JSON, the labels of the run as predictions, and a labeling config.

Images are addressed by Label Studio's local file serving, relative to its document root. Each task also holds `path`,
which Label Studio returns with every export. Read are exports as JSON and as JSON-MIN.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from xml.sax.saxutils import quoteattr

from pydantic import BaseModel

from justright.review.formats.base import Format, GivenLabel, LabelSheet, checked, read_json, xml_text
from justright.review.image_names import ImageNames
from justright.utils.files import write_json, write_text

CONTROL, IMAGE = "category", "image"  # names of the choices and of the image in the labeling config
EXPECTED = "tasks that Label Studio exported as JSON or JSON-MIN"


def write(sheet: LabelSheet, folder: Path) -> None:
    """Write tasks.json and labeling-config.xml."""
    tasks = []
    for name, label, confidence in zip(sheet.names.names, sheet.labels, sheet.confidence, strict=True):
        address = f"/data/local-files/?d={quote(f'{sheet.root.name}/{name}'.lstrip('/'))}"
        task: dict[str, Any] = {"data": {IMAGE: address, "path": name}}
        if label is not None:
            choice = {"from_name": CONTROL, "to_name": IMAGE, "type": "choices", "value": {"choices": [label]}}
            prediction: dict[str, Any] = {"model_version": f"justright {sheet.title}", "result": [choice]}
            task["predictions"] = [prediction if confidence is None else prediction | {"score": confidence}]
        tasks.append(task)
    write_json(folder / "tasks.json", tasks)
    choices = "".join(f"    <Choice value={quoteattr(xml_text(name))}/>\n" for name in sheet.classes)
    config = (
        f'<View>\n  <Image name="{IMAGE}" value="${IMAGE}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{IMAGE}" choice="single">\n{choices}  </Choices>\n</View>\n'
    )
    write_text(folder / "labeling-config.xml", config)


class Value(BaseModel):
    """What was chosen."""

    choices: list[str] = []


class Region(BaseModel):
    """One answer of an annotation."""

    from_name: str = ""
    value: Value = Value()


class Annotation(BaseModel):
    """What one person said about a task."""

    result: list[Region] = []
    was_cancelled: bool = False  # skipped


class Data(BaseModel):
    """The image of a task."""

    path: str | None = None
    image: str | None = None


class Task(BaseModel):
    """A task of a JSON export."""

    data: Data
    annotations: list[Annotation] = []


class ShortTask(Data):
    """A task of a JSON-MIN export."""

    category: str | Value | None = None


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The choices of people; predictions and skipped annotations say nothing."""
    value = checked(list[dict[str, Any]], read_json(path), path, EXPECTED)
    if any("data" not in each for each in value):
        for short in checked(list[ShortTask], value, path, EXPECTED):
            category = short.category
            chosen = category.choices if isinstance(category, Value) else [category] if category else []
            yield from (GivenLabel(_name(short), label) for label in chosen)
        return
    for task in checked(list[Task], value, path, EXPECTED):
        for annotation in task.annotations:
            for region in () if annotation.was_cancelled else annotation.result:
                if region.from_name == CONTROL:
                    yield from (GivenLabel(_name(task.data), label) for label in region.value.choices)


def _name(data: Data) -> str:
    """The path of an image, or what its address says about it."""
    if data.path is not None:
        return data.path
    try:
        address = urlsplit(data.image or "")
    except ValueError:
        return data.image or ""
    return parse_qs(address.query).get("d", [address.path])[0]


FORMAT = Format(
    write,
    read,
    file="tasks.json",
    usage="Start Label Studio with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and "
    "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={above}. In a new project, paste {out}/labeling-config.xml as code of the "
    "labeling interface, add {root} as source storage of the kind local files, and import {out}/tasks.json.",
)
