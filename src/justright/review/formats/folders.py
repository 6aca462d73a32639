"""One folder per category. To correct a label, move the image into another folder; a new folder is a new category."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa

from justright.data import ImageSet
from justright.data.columns import names_column, nfc, with_columns
from justright.data.folder import is_image_name, walk
from justright.review.export import fill_class_folders
from justright.review.formats import Format, GivenLabel, LabelSheet, checked, read_json
from justright.review.image_names import ImageNames
from justright.utils.files import write_json

NAMES = ".categories.json"  # the names of categories that cannot be the name of a folder


def write(sheet: LabelSheet, folder: Path) -> None:
    """Link or copy the images with a label."""
    rows = [row for row, label in enumerate(sheet.labels) if label is not None]
    classes, labels = np.unique(np.array([sheet.labels[row] for row in rows], dtype=object), return_inverse=True)
    chosen = sheet.images.take(rows)
    columns = {"label": pa.array(labels.astype(np.int32)), "class_name": names_column(classes.tolist(), labels)}
    labeled = ImageSet(with_columns(chosen.table, columns), chosen.readers)
    files = [sheet.names.file_names[row] for row in rows]
    folder_of = fill_class_folders(labeled, folder, files, sheet.is_copy)
    if others := {place: name for name, place in folder_of.items() if place != name}:
        write_json(folder / NAMES, others)


def read(path: Path, images: ImageNames) -> Iterator[GivenLabel]:
    """The folder of each image; images directly in `path` have no label."""
    known = path / NAMES
    names = checked(
        dict[str, str], read_json(known) if known.is_file() else {}, known, "names of folders and categories"
    )
    for file in walk(path):
        folder = nfc(str(PurePosixPath(file).parent))
        if folder != "." and is_image_name(file):
            yield images.name_of_file(path / file), names.get(folder, folder)


FORMAT = Format(
    write,
    read,
    usage="Move images between the folders of {out}; a new folder is a new category.",
    images="",
)
