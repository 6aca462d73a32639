"""One folder per category. To correct a label, move the image into another folder; a new folder is a new category."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from justright.data.columns import nfc
from justright.data.folder import is_image_name, walk
from justright.review.export import fill_class_folders, with_classes
from justright.review.formats import Format, GivenLabel, LabelSheet, checked, read_json
from justright.review.image_names import ImageNames
from justright.utils.files import write_json

NAMES = ".categories.json"  # the names of categories that cannot be the name of a folder


def write(sheet: LabelSheet, folder: Path) -> None:
    """Link or copy the images with a label."""
    label_of = {row: label for row, label in enumerate(sheet.labels) if label is not None}
    labeled = with_classes(sheet.images.take(list(label_of)), list(label_of.values()))
    files = [sheet.names.file_names[row] for row in label_of]
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
