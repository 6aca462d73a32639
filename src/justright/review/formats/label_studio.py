"""Label Studio: tasks as JSON, the labels of the run as predictions, and a labeling config.

Images are addressed by Label Studio's local file serving, relative to its document root. Each task also holds `path`,
which Label Studio returns with every export. Exports as JSON and as JSON-MIN can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from xml.sax.saxutils import quoteattr

from pydantic import BaseModel

from justright.review.formats import Format, GivenLabel, LabelSheet, checked, read_json, xml_text
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


class _Choices(BaseModel):
    choices: list[str] = []


class _Answer(BaseModel):
    from_name: str = ""
    value: _Choices = _Choices()


class _Annotation(BaseModel):
    result: list[_Answer] = []
    was_cancelled: bool = False  # whether a person skipped the task


class _Image(BaseModel):
    path: str | None = None
    image: str | None = None


class _Task(_Image):  # JSON has `data` and `annotations`, JSON-MIN the image and its `category`
    data: _Image | None = None
    annotations: list[_Annotation] = []
    category: str | _Choices | None = None


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The choices of people; predictions and skipped annotations are ignored."""
    for task in checked(list[_Task], read_json(path), path, EXPECTED):
        chosen = task.category.choices if isinstance(task.category, _Choices) else [task.category or ""]
        if task.data is not None:
            answers = [each for one in task.annotations if not one.was_cancelled for each in one.result]
            chosen = [label for each in answers if each.from_name == CONTROL for label in each.value.choices]
        yield from ((_name(task.data or task), label) for label in chosen if label)


def _name(image: _Image) -> str:
    """The path of an image, or else the one in its address."""
    if image.path is not None:
        return image.path
    try:
        address = urlsplit(image.image or "")
    except ValueError:
        return image.image or ""
    return parse_qs(address.query).get("d", [address.path])[0]


FORMAT = Format(
    write,
    read,
    file="tasks.json",
    usage="Start Label Studio with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and "
    "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={above}. In a new project, paste {out}/labeling-config.xml as code of the "
    "labeling interface, add {root} as source storage of the kind local files, and import {out}/tasks.json.",
)
