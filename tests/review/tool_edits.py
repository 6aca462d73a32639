"""Exports of a run, changed and saved as each labeling tool does it."""

from __future__ import annotations

import csv
import json
import shutil
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

Labels = Mapping[str, str | None]  # by the name of an image: its new label, None for no label at all


def label_studio(out: Path, labels: Labels) -> Path:
    """The JSON export: people accepted or changed the prediction of every task."""
    tasks = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    exported = []
    for number, task in enumerate(tasks, start=1):
        name = task["data"]["path"]
        shown = [each["value"]["choices"][0] for made in task.get("predictions", []) for each in made["result"]]
        chosen = labels.get(name, shown[0] if shown else None)
        value = {"value": {"choices": [chosen]}, "id": "x1", "from_name": "category", "to_name": "image",
                 "type": "choices", "origin": "manual"}  # fmt: skip
        annotation = {"id": number, "completed_by": 1, "result": [value] * (chosen is not None),
                      "was_cancelled": False, "ground_truth": False, "lead_time": 2.5}  # fmt: skip
        exported.append({"id": number, "annotations": [annotation], "drafts": [], "meta": {}, "project": 1, **task})
    return saved_json(out / "project-1-at-2026.json", exported)


def coco(out: Path, labels: Labels) -> Path:
    """COCO as most tools write it: without scores, and with other ids of categories."""
    value = json.loads((out / "annotations" / "instances_default.json").read_text(encoding="utf-8"))
    name_of = {each["id"]: each["file_name"] for each in value["images"]}
    old = {each["id"]: each["name"] for each in value["categories"]}
    now = {each["image_id"]: old[each["category_id"]] for each in value["annotations"]}
    now |= {image: labels[name] for image, name in name_of.items() if name in labels}
    names = sorted({name for name in (*old.values(), *now.values()) if name is not None})
    value["categories"] = [{"id": 7 + place, "name": name} for place, name in enumerate(names)]
    value["annotations"] = [
        {"id": number, "image_id": image, "category_id": 7 + names.index(name), "bbox": [0, 0, 9, 9]}
        for number, (image, name) in enumerate(now.items())
        if name is not None
    ]
    return saved_json(out / "instances_default.json", value)


def fiftyone(out: Path, labels: Labels) -> Path:
    """FiftyOne labels without a list of classes: names instead of numbers."""
    value = json.loads((out / "labels.json").read_text(encoding="utf-8"))
    keys = {str(file.relative_to(out / "data").with_suffix("")) for file in (out / "data").rglob("*") if file.is_file()}
    assert keys == set(value["labels"])
    now = {key: None if each is None else value["classes"][each["label"]] for key, each in value["labels"].items()}
    now |= {name.rpartition(".")[0]: label for name, label in labels.items()}
    return saved_json(out / "corrected.json", {"classes": None, "labels": now})


def cvat(out: Path, labels: Labels) -> Path:
    """The zip that CVAT downloads."""
    tree = ET.parse(out / "annotations.xml")
    for image in tree.getroot().iter("image"):
        name = image.get("name")
        if name in labels:
            for tag in image.findall("tag"):
                image.remove(tag)
            if labels[name] is not None:
                ET.SubElement(image, "tag", {"label": labels[name], "source": "manual"})
    with zipfile.ZipFile(out / "task.zip", "w") as archive:
        archive.writestr("annotations.xml", ET.tostring(tree.getroot(), "utf-8", xml_declaration=True))
    return out / "task.zip"


def csv_table(out: Path, labels: Labels) -> Path:
    """The table as a spreadsheet saves it."""
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["class_name"] = labels.get(row["path"], row["class_name"]) or ""
    with out.with_name("corrected.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(rows)
    return out.with_name("corrected.csv")


def folders(out: Path, labels: Labels, contents: Mapping[str, bytes]) -> Path:
    """Move files to other folders; `contents` identifies the image of each file."""
    files = {file: file.read_bytes() for file in out.rglob("*.png")}
    for name, label in labels.items():
        file = next(file for file, data in files.items() if data == contents[name])
        if label is None:
            file.unlink()
        else:
            (out / label).mkdir(exist_ok=True)
            shutil.move(file, out / label / file.name)
    return out


def saved_json(file: Path, value: object) -> Path:
    file.write_text(json.dumps(value), encoding="utf-8")
    return file


EDITS: dict[str, Callable[..., Path]] = {
    "label-studio": label_studio,
    "coco": coco,
    "fiftyone": fiftyone,
    "cvat": cvat,
    "csv": csv_table,
    "folders": folders,
}
