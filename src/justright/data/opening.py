"""Open the images that a person names (a folder, a table, a zip, a known data set) as an ImageSet."""

from __future__ import annotations

from pathlib import Path

from justright.data.archive import open_archive, other_members
from justright.data.catalog import DATA_SETS
from justright.data.folder import is_recognised, open_folder, walk
from justright.data.image_set import ImageSet
from justright.data.manifest import open_manifest
from justright.utils.errors import MissingDataError

ACCEPTED = (
    "a folder with one folder a class, a manifest (.csv or .parquet), a zip of images, NAME:ROOT for a data set that "
    "`justright data --list` names, or glyphs"
)


def open_images(source: str | Path) -> ImageSet:
    """Open a folder, a manifest, a saved ImageSet, a zip, or a data set of the catalog (`cub:/data/cub`, `glyphs`)."""
    name, _, root = str(source).partition(":")
    if name in DATA_SETS and not Path(source).exists():
        return DATA_SETS[name].load(root)
    path = Path(source)
    if path.is_dir():
        return open_folder(path)
    if not path.is_file():
        raise MissingDataError(f"no such file or folder: {source}", expected=ACCEPTED)
    return open_archive(path) if path.suffix.lower() == ".zip" else open_manifest(path)


def unrecognised(source: str | Path) -> list[str]:
    """The files of a folder or a zip that are not taken for images because of their names; hidden ones do not count."""
    path = Path(source)
    if path.is_dir():
        return sorted(name for name in walk(path) if not is_recognised(name))
    return other_members(path) if path.is_file() and path.suffix.lower() == ".zip" else []
