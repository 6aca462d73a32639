"""FiftyOne: the folder of a FiftyOneImageClassificationDataset, with labels.json and the images in data/.

labels.json maps the name of each image below data/, without its ending, to its label and confidence. A label is a place
in the list of classes, or a name where this list is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from justright.review.formats import Format, GivenLabel, LabelSheet, checked, read_json
from justright.review.image_names import ImageNames
from justright.utils.errors import DataError
from justright.utils.files import write_json

EXPECTED = "labels.json of a FiftyOneImageClassificationDataset: classes and labels"


def write(sheet: LabelSheet, folder: Path) -> None:
    """Write labels.json."""
    number = {name: place for place, name in enumerate(sheet.classes)}
    labels: dict[str, Any] = {}
    for key, label, confidence in zip(sheet.names.stems, sheet.labels, sheet.confidence, strict=True):
        entry = None if label is None else {"label": number[label]}
        labels[key] = entry if entry is None or confidence is None else entry | {"confidence": confidence}
    write_json(folder / "labels.json", {"classes": sheet.classes, "labels": labels})


class _Label(BaseModel):
    label: int | str


class _Labels(BaseModel):
    classes: list[str] | None = None
    labels: dict[str, int | str | _Label | list[int | str | _Label] | None]


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The labels of labels.json."""
    saved: _Labels = checked(_Labels, read_json(path), path, EXPECTED)
    for key, value in saved.labels.items():
        image = images.name_of_stem(key)
        for given in value if isinstance(value, list) else [] if value is None else [value]:
            label = given.label if isinstance(given, _Label) else given
            if saved.classes is not None:
                if not isinstance(label, int) or not 0 <= label < len(saved.classes):
                    raise DataError(f"{path}: {key} has the label {label!r}", expected="a place in the list of classes")
                label = saved.classes[label]
            yield image, str(label)


FORMAT = Format(
    write,
    read,
    file="labels.json",
    images="data",
    has_images=True,
    usage="fiftyone.Dataset.from_dir(r'{out}', dataset_type=fiftyone.types.FiftyOneImageClassificationDataset) opens "
    "it. After correcting, export with the same type and rel_dir=r'{root}', so that names keep their folders.",
)
